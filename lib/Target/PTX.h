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

#include "llvm/ADT/StringMap.h"

#include <string>

namespace mlir::kvcache {

/// Where a kernel's parameter lies in the buffer of all of them, in bytes.
struct ParameterPlace {
  uint64_t size, offset;
};

/// The text of PTX, and where the parameters of its kernels lie.
struct PTXModule {
  std::string text;
  llvm::StringMap<SmallVector<ParameterPlace>> parameters;
};

/// Compiles a module in the LLVM dialect to PTX. The files that the target
/// names are linked, and `libdevice`, the path of CUDA's library, unless it is
/// empty. Fails with a diagnostic.
FailureOr<PTXModule> compileToPTX(gpu::GPUModuleOp module,
                                  NVVM::NVVMTargetAttr target,
                                  StringRef libdevice);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_PTX_H
