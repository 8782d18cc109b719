//===- AttentionSizes.h - Numbers of heads and elements ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONSIZES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONSIZES_H

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// The sizes of attention that types say.
struct AttentionSizes {
  explicit AttentionSizes(AttentionOp op)
      : heads(
            cast<CacheTypeInterface>(op.getKeyCache().getType()).getNumHeads()),
        group(cast<ShapedType>(op.getQ().getType()).getDimSize(1) / heads),
        keySize(op.getKeySize()),
        valueSize(cast<ShapedType>(op.getOut().getType()).getDimSize(2)),
        contentSize(keySize - op.getRopeSize()) {}

  /// Heads of the caches, and query heads of each.
  int64_t heads, group;
  /// Elements of a key and of a value.
  int64_t keySize, valueSize;
  /// Elements of a key before those of `rope_cache`: all without it.
  int64_t contentSize;
};

/// Returns whether rows may have several ranges, and do not see the tokens
/// between. The operand is null without ranges.
inline bool hasGaps(Value ranges) {
  return ranges && cast<ShapedType>(ranges.getType()).getDimSize(1) != 1;
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONSIZES_H
