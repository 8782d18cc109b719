//===- SplitAttention.h - Attention that leaves splits ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_SPLITATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_SPLITATTENTION_H

#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Checks that an op which may split rows leaves the splits to `merge_splits`:
/// kernels of a GPU merge none.
LogicalResult verifySplitsAreLeft(AttentionOp op);

/// Removes `partial` from an op, and the `merge_splits` after it: on a CPU,
/// rows are not split. Emits an error if there is no such op.
LogicalResult joinSplits(AttentionOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_SPLITATTENTION_H
