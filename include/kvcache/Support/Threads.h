//===- Threads.h - The threads of a block -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_THREADS_H
#define KVCACHE_SUPPORT_THREADS_H

#include "kvcache/Support/IndexBuilder.h"

namespace mlir::kvcache {

/// The number of the thread in its block, x fastest, in GPU code.
Value getThread(const IndexBuilder &b);

/// The number of threads of a block.
Value countThreads(const IndexBuilder &b);

/// The number of threads of a block of the kernel that the op is or is in, if
/// the kernel states it.
std::optional<int64_t> getKnownThreads(Operation *op);

/// The number of blocks of a cluster of the kernel that the op is or is in, if
/// the kernel states it; else 1.
int64_t countBlocksOfCluster(Operation *op);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_THREADS_H
