//===- ScoreRows.h - Rows of a fragment of scores ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCOREROWS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCOREROWS_H

#include "FragmentBuilder.h"
#include "TileRows.h"

namespace mlir::kvcache {

/// Whether the softmax multiplies by the factor, in the instruction that
/// subtracts the largest score. Scores are products then, and the factor is
/// positive: its sign is that of the queries.
/// Not where a lane has two scores of a row, as with swapAB: then to multiply
/// these takes no more instructions than to multiply the row's maximum.
bool areScoresProducts(const TileRows &block);

/// The factor of products with the rows of a query head, in f32.
Value getHeadFactor(const TileRows &block, Value queryHead);

/// The rows of a fragment of scores.
struct ScoreRows {
  /// The type of a tile's products and scores.
  FragmentType type;
  /// The number of the fragment's row 0 in the block.
  Value firstRow;
  /// The factor of each row.
  Value factor;

  /// Computes the factors. Products of rows are multiplied by `queryFactors`,
  /// too, unless they are null.
  static ScoreRows create(const TileRows &block, const FragmentBuilder &b,
                          FragmentType type, Value firstRow,
                          Value queryFactors);
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SCOREROWS_H
