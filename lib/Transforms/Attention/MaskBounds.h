//===- MaskBounds.h - Which tokens a mask admits ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKBOUNDS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKBOUNDS_H

#include "Attention.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::kvcache {

/// Indices from `lo` to `hi`.
struct IndexBounds {
  Value lo, hi;
};

/// Rows of a sequence of `tokens` tokens: all pairs of some query heads and
/// some positions.
struct RowBox {
  Value sequence;
  IndexBounds heads, queries;
  Value tokens;
};

/// Tokens [from, to) of a sequence: each token that some row of a box sees is
/// in `any`, and each token in `all` is seen by all rows. `all` may have its
/// end before its begin.
struct AdmittedTokens {
  TokenRange any, all;
};

/// Whether some or all pairs of rows and tokens are admitted. `any` is false
/// only if none is, and `all` true only if all are.
struct AdmittedPairs {
  Value any, all;
};

/// Builds bounds of the tokens that a region `mask` admits for a box of rows.
///
/// Each integer of the region has an interval. Ops that depend on neither head,
/// row nor token are cloned. Other ops have rules, or make what depends on them
/// unknown: so do ops that may wrap.
AdmittedTokens computeTokens(const IndexBuilder &builder, Region &mask,
                             const RowBox &box);
AdmittedPairs computePairs(const IndexBuilder &builder, Region &mask,
                           const RowBox &box, const IndexBounds &tokens);

/// The tokens that the region `mask` admits for rows [first, last] of a
/// sequence, for any and for all of them; none without a region. `first` and
/// `last` are one value for a single row, which has better bounds. They are the
/// same for all heads, so that blocks of all heads have the same tokens.
std::optional<AdmittedTokens> computeTokens(const Frame &frame, AttentionOp op,
                                            const QueryRows &rows, Value first,
                                            Value last);

/// The position of a row in its sequence, as the regions take it: 0 for a row
/// before all tokens, which `lengths` may have.
Value getQueryPosition(const Frame &frame, AttentionOp op,
                       const QueryRows &rows, Value i);

/// The tokens of `seen` that the region `mask` admits for any of these rows.
TokenRange restrictTokens(const Frame &frame, AttentionOp op,
                          const QueryRows &rows, Value first, Value last,
                          const TokenRange &seen);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKBOUNDS_H
