//===- HostLowering.h - From memref, vector and scf to LLVM -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_PIPELINES_HOSTLOWERING_H
#define KVCACHE_LIB_PIPELINES_HOSTLOWERING_H

#include "mlir/Pass/PassManager.h"

namespace mlir::kvcache {

/// Adds the passes that take host code without cache ops to LLVM, with a C
/// wrapper for every function. Several threads may share parallel loops.
void addHostLowering(OpPassManager &pm, int32_t threads = 1);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_HOSTLOWERING_H
