//===- MaskBounds.h - Which tokens a mask admits ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKBOUNDS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKBOUNDS_H

#include "TokenRange.h"
#include "kvcache/Support/IndexBuilder.h"

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

/// Builds bounds of the tokens that a region `mask` admits for a box of rows.
///
/// Each integer of the region has an interval. Ops that depend on neither head,
/// row nor token are cloned. Other ops have rules, or make what depends on them
/// unknown: so do ops that may wrap.
AdmittedTokens computeTokens(const IndexBuilder &builder, Region &mask,
                             const RowBox &box);
AdmittedPairs computePairs(const IndexBuilder &builder, Region &mask,
                           const RowBox &box, const IndexBounds &tokens);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_MASKBOUNDS_H
