//===- HintChoice.h - Hints of reads of caches ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_HINTCHOICE_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_HINTCHOICE_H

#include "AttentionShape.h"

namespace mlir::kvcache {

/// Chooses the priority of lines that blocks, or warps, of so many query rows
/// read from the cache; `normal` without a hint.
Eviction chooseHint(AttentionOp op, const AttentionShape &shape, int64_t rows);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_HINTCHOICE_H
