//===- KernelParameters.h - Descriptions of parameters ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_KERNELPARAMETERS_H
#define KVCACHE_SUPPORT_KERNELPARAMETERS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// Returns the attribute `kvcache.parameters` of a kernel: a dictionary with
/// `name` and `type` for each argument. Returns null if the kernel has no such
/// attribute, and fails with an error if it has another form.
FailureOr<ArrayAttr> getKernelParameters(LLVM::LLVMFuncOp kernel);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_KERNELPARAMETERS_H
