//===- Failures.h - Why kernels have trapped --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_CUDA_FAILURES_H
#define KVCACHE_LIB_RUNTIME_CUDA_FAILURES_H

#include "Driver.h"
#include "kvcache/Runtime/FailureRecord.h"

#include <string>

namespace mlir::kvcache::runtime::cuda {

/// Gives a loaded module memory for the message of a check that fails. Sets
/// `record` to it, or to null if the module has no checks. On failure, sets the
/// last error.
int32_t addFailureRecord(const Driver &driver, CUmodule module,
                         const char *subject, FailureRecord *&record);

/// Frees it. Its module must be unloaded.
void removeFailureRecord(const Driver &driver, FailureRecord *record);

/// Returns "FILE:LINE: MESSAGE" of the check that failed last; nothing if none
/// has.
std::string getLastFailure();

} // namespace mlir::kvcache::runtime::cuda

#endif // KVCACHE_LIB_RUNTIME_CUDA_FAILURES_H
