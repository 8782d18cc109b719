//===- PTX.h - From LLVM dialect to PTX -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TARGET_PTX_H
#define KVCACHE_LIB_TARGET_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <string>

namespace mlir::kvcache {

/// Compiles a module in the LLVM dialect to the text of PTX. The files that the
/// target names are linked, and `libdevice`, the path of CUDA's library,
/// unless it is empty. Fails with a diagnostic.
FailureOr<std::string> compileToPTX(gpu::GPUModuleOp module,
                                    NVVM::NVVMTargetAttr target,
                                    StringRef libdevice);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_PTX_H
