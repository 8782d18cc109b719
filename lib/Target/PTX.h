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

#include <memory>
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

class ModuleToPTX;

/// The compilation of a module in the LLVM dialect to PTX. The files that the
/// target names are linked, and `libdevice`, the path of CUDA's library, unless
/// it is empty.
class PTXCompilation {
public:
  /// Translates the module to LLVM IR. Fails with a diagnostic.
  static FailureOr<PTXCompilation> create(gpu::GPUModuleOp module,
                                          NVVM::NVVMTargetAttr target,
                                          StringRef libdevice);
  PTXCompilation(PTXCompilation &&);
  ~PTXCompilation();

  /// Compiles LLVM IR, in any thread: MLIR's context is not used.
  void run();

  /// Returns what `run` has made, or fails with a diagnostic.
  FailureOr<PTXModule> finish();

private:
  explicit PTXCompilation(std::unique_ptr<ModuleToPTX> compiler);

  std::unique_ptr<ModuleToPTX> compiler;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_PTX_H
