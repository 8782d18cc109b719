//===- RowBounds.h - Bounds of the tokens that rows see ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROWBOUNDS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROWBOUNDS_H

#include "ScoreRows.h"

namespace mlir::kvcache {

/// The ends, and perhaps the begins, of the tokens that each row of a fragment
/// sees by position and ranges, as i32s.
class RowBounds {
public:
  /// Computes the bounds if they are to be live across the loop over tiles.
  static RowBounds create(const TileRows &block, const FragmentBuilder &b,
                          const ScoreRows &rows);

  /// Returns the bounds. Those that are not live across the loop are computed
  /// where tiles are masked.
  SmallVector<Value> get(const TileRows &block, const FragmentBuilder &b,
                         const ScoreRows &rows) const;

private:
  /// The bounds that are live across the loop; otherwise empty.
  SmallVector<Value> carried;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROWBOUNDS_H
