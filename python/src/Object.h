//===- Object.h - Modules to object files -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_OBJECT_H
#define KVCACHE_PYTHON_OBJECT_H

#include "kvcache/Compile/Source.h"
#include "llvm/Support/Error.h"

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace mlir::kvcache::python {

/// An object file for a shared library, or none on errors.
struct ObjectResult {
  std::optional<std::string> object;
  std::vector<DiagnosticRecord> diagnostics;
};

/// Compiles a module for every machine of this architecture. The passes must
/// leave the LLVM dialect and TVM-FFI wrappers; other functions are hidden.
ObjectResult compileObject(std::string source, std::string filename,
                           std::string passes, unsigned optLevel);

/// An object file of a module in the LLVM dialect. Of its functions only
/// TVM-FFI wrappers are visible to others.
llvm::Expected<std::string>
createObject(ModuleOp module, llvm::TargetMachine &machine, unsigned optLevel);

/// The path of MLIR's library of helper functions, which compiled code may
/// call.
std::string getHelperLibrary();

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_OBJECT_H
