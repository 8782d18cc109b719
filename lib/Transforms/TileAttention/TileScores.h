//===- TileScores.h - Scores of tiles ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H

#include "TileMask.h"

namespace mlir::kvcache {

/// The scores of rows of a block: products times a factor, the soft cap, the
/// op's region `score`, and what masks and positions exclude.
class TileScores {
public:
  /// `firstRow` is the number of a fragment's row 0 in the block. Products of
  /// rows are multiplied by `queryFactors`, too, unless they are null.
  TileScores(const TileRows &block, const FragmentBuilder &b, FragmentType type,
             Value firstRow, Value queryFactors = {})
      : block(block), b(b),
        rows(ScoreRows::create(block, b, type, firstRow, queryFactors)),
        mask(block, b, rows) {}

  /// The type of a tile's products and scores.
  FragmentType getType() const { return rows.type; }
  /// The factor of each row that the softmax multiplies by; null if scores are
  /// exponents of 2.
  Value getFactor() const {
    return areScoresProducts(block) ? rows.factor : Value();
  }
  /// The scores of products with a tile, whose first token is given: -inf for
  /// tokens that a row does not see.
  Value apply(Value products, Value tile, Value token) const {
    return mask.apply(modify(products, token), tile, token);
  }

private:
  /// The products times their factor, with the soft cap and the region `score`.
  Value modify(Value products, Value token) const;

  const TileRows &block;
  const FragmentBuilder &b;
  ScoreRows rows;
  TileMask mask;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H
