//===- PartialTiles.h - Tiles that rows see in part -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PARTIALTILES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PARTIALTILES_H

#include "TileRows.h"

namespace mlir::kvcache {

/// The tiles of a block of which some row may not see all tokens.
class PartialTiles {
public:
  /// Computes the tiles that need no masks, if the loop over tiles compares
  /// with these: tiles with and without masks then get loops of their own.
  static PartialTiles create(const TileRows &block);

  /// Whether a row may not see all tokens of a tile by the region `mask`.
  Value needMaskRegion(Value tile) const;
  /// Likewise by positions, ranges and the bits of `mask`.
  Value needMask(Value tile) const;

private:
  explicit PartialTiles(const TileRows &block) : block(block) {}

  const TileRows &block;
  /// Tiles that every row sees by its position, and tiles that the region
  /// `mask` admits for all rows; null where each tile is looked at.
  TokenRange whole, admitted;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PARTIALTILES_H
