//===- TileMask.h - Tokens that rows do not see -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEMASK_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEMASK_H

#include "PartialTiles.h"
#include "RowBounds.h"

namespace mlir::kvcache {

/// Excludes tokens of tiles that rows do not see: their scores become -inf.
class TileMask {
public:
  TileMask(const TileRows &block, const FragmentBuilder &b,
           const ScoreRows &rows)
      : block(block), frame(block.getFrame()), b(b), rows(rows),
        bounds(RowBounds::create(block, b, rows)),
        partial(PartialTiles::create(block)) {}

  /// Excludes tokens of a tile, whose first token is given.
  Value apply(Value scores, Value tile, Value token) const;

private:
  Value applyRegion(Value scores, Value tile, Value token) const;
  /// Excludes tokens by position, ranges and the bits of `mask`.
  Value applyPositions(Value scores, Value tile, Value token) const;
  /// Excludes tokens between ranges of a row.
  Value applyGaps(Value scores, Value token) const;
  /// Excludes ids of the tile that are no row's.
  Value applyIds(Value scores, Value tile) const;
  /// Whether a row sees a token of the tile from `token` on. `place` is the
  /// row, and the column as the first one of the lane and a distance.
  Value isSeen(ValueRange rowBounds, ValueRange place, Value token) const;

  const TileRows &block;
  const Frame &frame;
  const FragmentBuilder &b;
  ScoreRows rows;
  RowBounds bounds;
  PartialTiles partial;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEMASK_H
