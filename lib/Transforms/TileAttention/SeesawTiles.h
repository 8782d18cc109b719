//===- SeesawTiles.h - Latent tiles in parts --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWTILES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWTILES_H

#include "WorkItems.h"

namespace mlir::kvcache {

/// Tiles of latent rows in three parts, which copies bring and products free
/// one by one: two halves of the values, and the rope, which only keys have.
class SeesawTiles {
public:
  SeesawTiles(const TileRows &block, const WorkItems &items);

  FloatType getElement() const { return shape.lane; }
  /// The columns of a half, and the first column of one.
  int64_t getHalfSize() const { return block.getSizes().valueSize / 2; }
  Value getFirstColumn(Value half) const;

  void allocate();
  /// Starts the copies of the first of `count` tiles.
  void start(Value count);
  /// Start the copy of a half or of the rope of a tile, if there is one, into
  /// the slot of the tile `stages` before.
  void copyHalf(Value tile, Value half) const;
  void copyRope(Value tile) const;
  void copyAll(Value tile) const;

  /// Runs `body`, whose results have these types, with a part, and frees it.
  using Body = function_ref<SmallVector<Value>(Value part)>;
  SmallVector<Value> useHalf(const FragmentBuilder &b, Value tile, Value half,
                             TypeRange types, Body body) const;
  SmallVector<Value> useRope(const FragmentBuilder &b, Value tile,
                             TypeRange types, Body body) const;

private:
  /// The number of a half among all uses of their pipe.
  Value getHalfUse(Value tile, Value half) const;
  /// Copies columns of a tile from one on, in a use of a pipe.
  void copy(Value pipe, Value use, Value tile, Value column) const;

  const TileRows &block;
  const WorkItems &items;
  const Frame &frame;
  TileShape shape;
  /// The pipes, and the number of tiles.
  Value halves, ropes, tiles;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWTILES_H
