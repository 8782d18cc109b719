//===- TileSource.h - The tiles of a loop -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESOURCE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESOURCE_H

#include "mlir/IR/ValueRange.h"

namespace mlir::kvcache {

/// Gives a loop tiles of keys and values, one after the other.
class TileSource {
public:
  virtual ~TileSource() = default;

  /// Makes a tile complete. `end` follows its use.
  virtual void begin(Value tile) = 0;
  virtual void end() = 0;
  /// Whether the rows of a tile are keys and values.
  virtual bool areLatent() const = 0;

  /// Runs `body` with a tile of keys or values, and returns what it returns, of
  /// these types. Latent rows are keys.
  using Body = function_ref<SmallVector<Value>(Value tile)>;
  virtual SmallVector<Value> useKeys(Value tile, TypeRange types,
                                     Body body) const = 0;
  virtual SmallVector<Value> useValues(Value tile, TypeRange types,
                                       Body body) const = 0;
  /// Multiplies scores by the scales of the tokens in the tile in use, unless
  /// its elements have these.
  virtual Value scaleScores(Value scores) const = 0;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESOURCE_H
