//===- VisibleTokens.h - The tokens that rows see ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_VISIBLETOKENS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_VISIBLETOKENS_H

#include "QueryRows.h"
#include "TokenRange.h"

#include <optional>

namespace mlir::kvcache {

/// The tokens that query rows see: by position, by `ranges`, by the bits of
/// `mask`, and by bounds of the region `mask`.
class VisibleTokens {
public:
  VisibleTokens(const Frame &frame, AttentionOp op) : frame(frame), op(op) {}

  /// The tokens that row `first + i` sees by position, and of these those from
  /// its first range to its last one.
  TokenRange getByPosition(const QueryRows &rows, Value i) const;
  TokenRange get(const QueryRows &rows, Value i) const;
  /// Whether the bits of `mask` let row `first + i` see a token.
  Value isUnmasked(const QueryRows &rows, Value i, Value token) const;

  /// The tokens that the region `mask` admits for rows [first, last] of a
  /// sequence, for any and for all of them; none without a region. `first` and
  /// `last` are one value for a single row, which has better bounds. They are
  /// the same for all heads, so that blocks of all heads have the same tokens.
  std::optional<AdmittedTokens> computeAdmitted(const QueryRows &rows,
                                                Value first, Value last) const;
  /// The tokens of `seen` that the region `mask` admits for any of these rows.
  TokenRange restrict(const QueryRows &rows, Value first, Value last,
                      const TokenRange &seen) const;

  /// Whether rows may see no tokens from the first one on, by position or
  /// ranges.
  static bool haveBegin(AttentionOp op) {
    return op.getWindow() || op.getChunk() || op.getRanges();
  }

private:
  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_VISIBLETOKENS_H
