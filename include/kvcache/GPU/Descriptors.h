//===- Descriptors.h - Descriptors as kernel parameters ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_GPU_DESCRIPTORS_H
#define KVCACHE_GPU_DESCRIPTORS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// Marks a pointer argument of a kernel as a descriptor, passed by value in 128
/// bytes of the parameter space, from where tensor copies read it.
void markDescriptor(LLVM::LLVMFuncOp kernel, unsigned argument);

} // namespace mlir::kvcache

#endif // KVCACHE_GPU_DESCRIPTORS_H
