//===- CPUTileMask.h - The tokens of a tile that a row sees -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILEMASK_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILEMASK_H

#include "../SeenRanges.h"
#include "../VisibleTokens.h"
#include "CPUBlock.h"

namespace mlir::kvcache {

/// Which tokens of a tile rows see.
class CPUTileMask {
public:
  CPUTileMask(const Frame &frame, AttentionOp op, const CPUShape &shape)
      : frame(frame), op(op), visible(frame, op), ranges(frame, op),
        shape(shape) {}

  /// The tokens that some of rows [first, last] see.
  TokenRange getSeenByRows(const QueryRows &rows, Value first,
                           Value last) const;
  /// The tokens that a row sees by position, from its first range to its last.
  TokenRange getSeen(const QueryRows &rows, const CPURow &row) const {
    return visible.get(rows, row.i);
  }
  /// Whether the rows of a token may see a token of a tile.
  Value isAnySeen(const QueryRows &rows, const CPURow &row, Value tile,
                  const TokenRange &seen) const;
  /// The numbers of the tokens of a tile, in a vector.
  Value getTokens(Value tile) const;
  /// Which tokens of a tile the row sees by position, ranges and bits: of
  /// those that are given, if some are not.
  Value getFlags(const QueryRows &rows, const CPURow &row, Value tile,
                 const TokenRange &seen, Value areGiven) const;

private:
  Value splat(Value index) const;
  Value compare(arith::CmpIPredicate predicate, Value tokens,
                Value index) const;
  Value both(Value lhs, Value rhs) const;
  /// Which tokens the bits of `mask` let the row see.
  Value getUnmasked(const QueryRows &rows, const CPURow &row, Value tile,
                    VectorType type) const;
  /// Excludes tokens between ranges.
  Value maskGaps(const CPURow &row, Value tokens, Value flags) const;
  /// Whether the region `mask` may admit a token of a tile for rows of a token.
  Value isAnyAdmitted(const QueryRows &rows, const CPURow &row,
                      Value tile) const;

  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  VisibleTokens visible;
  SeenRanges ranges;
  const CPUShape &shape;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILEMASK_H
