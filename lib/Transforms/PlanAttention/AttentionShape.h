//===- AttentionShape.h - Properties of attention for choices ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONSHAPE_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONSHAPE_H

#include "AttentionTables.h"

namespace mlir::kvcache {

/// The properties of an op that choices depend on.
struct AttentionShape {
  explicit AttentionShape(AttentionOp op);

  bool isOf(Caches wanted) const {
    return wanted == Caches::Any || wanted == caches;
  }
  bool isOf(Tokens wanted) const {
    return wanted == Tokens::Any || wanted == tokens;
  }

  AttentionConfig config;
  Caches caches;
  Tokens tokens;
  bool hasSplits;
  /// Query heads of a head of the cache, and elements.
  int64_t heads, keySize, valueSize;
  /// Bits of the caches' elements, at least.
  int64_t bits;
  /// Whether the tokens that a row sees have a begin.
  bool hasBegin;
  /// Whether there are registers for products that overlap: without regions,
  /// which may need any number, masks that every tile needs, and ranges of long
  /// values (ptxas 13.0).
  bool canOverlap;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONSHAPE_H
