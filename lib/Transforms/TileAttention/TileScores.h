//===- TileScores.h - Scores of the products of a tile ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H

#include "../Attention/ScoreMath.h"
#include "FragmentBuilder.h"
#include "TileRows.h"

namespace mlir::kvcache {

/// The scores of rows of a block: products times a factor, the soft cap, the
/// op's regions, and what masks and positions exclude.
class TileScores {
public:
  /// `firstRow` is the number of a fragment's row 0 in the block. Products of
  /// rows are multiplied by `queryFactors`, too, unless they are null.
  TileScores(const TileRows &block, FragmentBuilder &b, FragmentType type,
             Value firstRow, Value queryFactors = {});

  /// Whether the softmax multiplies by the factor, in the instruction that
  /// subtracts the largest score. Scores are products then, and the factor is
  /// positive: its sign is that of the queries.
  /// Not where a lane has two scores of a row, as with swapAB: then to multiply
  /// these takes no more instructions than to multiply the row's maximum.
  static bool areProducts(const TileRows &block);
  /// The factor of products with the rows of a query head, in f32.
  static Value getFactor(const TileRows &block, Value queryHead);

  /// The type of a tile's products and scores.
  FragmentType getType() const { return type; }
  /// The factor of each row that the softmax multiplies by; null if scores are
  /// exponents of 2.
  Value getFactor() const { return areProducts(block) ? factor : Value(); }
  /// The scores of products with a tile, whose first token is given: -inf for
  /// tokens that a row does not see.
  Value apply(Value products, Value tile, Value token) const;

private:
  Value makeFactor(Value queryFactors) const;
  /// The end, and perhaps the begin, of the tokens that each row sees by
  /// position and ranges.
  SmallVector<Value> makeBounds() const;
  /// A bound of these tokens, as an i32.
  Value makeBounds(Value TokenRange::*bound) const;
  Value modify(Value products, Value token) const;
  /// Excludes tokens by the op's region, and by the mask and positions.
  Value maskByRegion(Value scores, Value tile, Value token) const;
  Value maskByPosition(Value scores, Value tile, Value token) const;
  /// Excludes ids of the tile that are no row's.
  Value maskIds(Value scores, Value tile) const;
  /// Excludes tokens between ranges of a row.
  Value maskGaps(Value scores, Value token) const;
  /// Whether a row sees a token of the tile from `token` on. `place` is the
  /// row, and the column as the first one of the lane and a distance.
  Value isSeen(ValueRange bounds, ValueRange place, Value token) const;

  /// Whether the bounds of rows are computed before the loop.
  bool carriesBounds() const;
  /// Whether the loop gets a schedule that overlaps products.
  bool overlaps() const {
    return *block.getConfig().schedule != Schedule::Prefetch;
  }
  /// Whether masked tiles get loops of their own: tiles are then compared with
  /// bounds from outside of the loop. Not for soft caps and regions `score`,
  /// whose code is too large for ptxas to overlap it twice.
  bool hasBounds() const;
  /// Whether some row may not see all tokens of a tile: by the region `mask`,
  /// or by the mask, positions and ranges.
  Value needsMaskRegion(Value tile) const;
  Value needsMask(Value tile) const;
  /// Whether a tile is not one of some tiles, which begin at 0 unless
  /// `mayBegin`.
  Value isOutside(Value tile, const TokenRange &tiles, bool mayBegin) const;
  /// The operands of a map, of scores and the bounds of each row. Made where
  /// tiles are masked, so that they are not live across the loop of the others.
  SmallVector<Value> withBounds(Value scores) const;
  /// Emits a region for a row of the block and a token, and returns what it
  /// yields. The score is null for the region `mask`.
  Value emitRegion(Region &region, Value score, Value row, Value token) const;
  Value selectSeen(Value isSeen, Value score) const;

  const TileRows &block;
  const Frame &frame;
  FragmentBuilder &b;
  DeviceMath f;
  ScoreMath math;
  VisibleTokens visible;
  FragmentType type;
  Value firstRow, factor;
  /// The bounds of rows that are live across the loop; otherwise empty.
  SmallVector<Value> carriedBounds;
  /// Tiles that every row sees by its position, and tiles that the region
  /// `mask` admits for all rows.
  TokenRange whole, admitted;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H
