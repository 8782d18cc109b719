//===- TileScores.h - Scores of the products of a tile ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H

#include "../ExpandOps/TileRows.h"
#include "FragmentBuilder.h"

namespace mlir::kvcache {

/// The scores of rows of a block: products times a factor, the soft cap, the
/// region `score`, and what the mask and positions exclude.
class TileScores {
public:
  /// `firstRow` is the number of a fragment's row 0 in the block.
  TileScores(TileRows &block, FragmentType type, Value firstRow);

  /// Whether the softmax multiplies by the factor, in the instruction that
  /// subtracts the largest score. Scores are products then, and the factor is
  /// positive: its sign is that of the queries.
  static bool areProducts(AttentionOp op);
  /// The factor of products with the rows of a query head, in f32.
  static Value getFactor(TileRows &block, Value queryHead);

  /// The factor of each row that the softmax multiplies by; null if scores are
  /// exponents of 2.
  Value getFactor() const { return areProducts(block.op) ? factor : Value(); }
  /// The scores of products with the tile of tokens from `token` on: -inf for
  /// those that a row does not see.
  Value apply(Value products, Value token) const;

private:
  Value makeFactor() const;
  /// The end of the tokens that each row sees, as an i32.
  Value makeEnds() const;
  Value modify(Value products, Value token) const;
  /// Applies the op's region to the score of a row of the block and a token.
  Value applyRegion(Value score, Value row, Value token) const;
  Value mask(Value scores, Value token) const;
  Value maskEach(Value scores, Value token) const;

  TileRows &block;
  const Frame &frame;
  FragmentBuilder b;
  FragmentType type;
  Value firstRow, factor;
  Value to;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESCORES_H
