//===- BackEndThreads.h - Threads of LLVM's back end ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TARGET_BACKENDTHREADS_H
#define KVCACHE_LIB_TARGET_BACKENDTHREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace mlir::kvcache {

/// Runs `job` for each number below `count`, in as many threads as the process
/// has cores, and returns when all have ended. This thread is one of them.
/// Fatal errors of LLVM have this thread's handler.
void runInThreads(size_t count, llvm::function_ref<void(size_t)> job);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_BACKENDTHREADS_H
