//===- ThreadCopies.h - Copies by all threads -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_THREADCOPIES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_THREADCOPIES_H

#include "Blocks.h"
#include "Choice.h"

namespace mlir::kvcache {

// Each does the work of a copy at its place, and leaves the copy there.

/// By loads and stores of the threads.
void emitPlain(OpBuilder &builder, Operation *copy, Threads threads);
/// By cp.async of the threads.
void emitAsyncCopy(OpBuilder &builder, Operation *copy, const Choice &choice,
                   Threads threads);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_THREADCOPIES_H
