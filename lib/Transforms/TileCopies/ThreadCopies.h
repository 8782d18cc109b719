//===- ThreadCopies.h - Copies by all threads -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_THREADCOPIES_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_THREADCOPIES_H

#include "Blocks.h"

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

// Each emits the work of a copy at the builder, and does not erase the copy.

/// By loads and stores of the threads.
void emitPlain(OpBuilder &builder, TileCopyOpInterface copy, Threads threads);
/// By cp.async of the threads.
void emitAsyncCopy(OpBuilder &builder, TileCopyOpInterface copy,
                   Threads threads);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_THREADCOPIES_H
