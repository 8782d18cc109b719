//===- FailureRecorder.h - Kernels say why they trap ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_TOLLVM_FAILURERECORDER_H
#define KVCACHE_LIB_CONVERSION_TOLLVM_FAILURERECORDER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// Adds a function `(message: ptr, file: ptr, line: i32)` to a module, which
/// writes the FailureRecord of the process, if the runtime has one. Fails if
/// the module uses its names for something else.
FailureOr<LLVM::LLVMFuncOp> createFailureRecorder(gpu::GPUModuleOp module,
                                                  SymbolTable &symbols);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_TOLLVM_FAILURERECORDER_H
