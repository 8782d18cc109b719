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
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::kvcache::python {

/// The prefix of the names of TVM-FFI wrappers.
inline constexpr StringLiteral kTVMFFIPrefix("__tvm_ffi_");

struct ObjectOptions {
  /// They must leave the LLVM dialect and TVM-FFI wrappers.
  std::string passes;
  unsigned optLevel;
  /// The level of processors that run the code; empty for every machine of this
  /// architecture.
  std::string level;
  /// Whether code without the matrix instructions of the level is left out.
  bool isOptional;
};

/// An object file for a shared library, or none on errors.
struct ObjectResult {
  /// Empty if it is left out.
  std::optional<std::string> object;
  /// The names of the TVM-FFI wrappers, whose bodies the object has.
  std::vector<std::string> wrappers;
  std::vector<DiagnosticRecord> diagnostics;
};

/// Compiles a module, or the bodies of its functions for a level. Functions
/// other than TVM-FFI wrappers are hidden.
ObjectResult compileObject(std::string source, std::string filename,
                           ObjectOptions options);

/// An object file of a module in the LLVM dialect. Of its functions only
/// TVM-FFI wrappers are visible to others. `prepare` changes the translated
/// module before it is optimized.
llvm::Expected<std::string>
createObject(ModuleOp module, llvm::TargetMachine &machine, unsigned optLevel,
             llvm::function_ref<void(llvm::Module &)> prepare);

/// Emits the machine code of an optimized module.
llvm::Expected<std::string> emitObject(llvm::Module &module,
                                       llvm::TargetMachine &machine);

/// The code generator for shared libraries: for every machine of this
/// architecture, or for those of a level.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createPortableMachine(StringRef level, unsigned optLevel);

/// The path of MLIR's library of helper functions, which compiled code may
/// call.
std::string getHelperLibrary();

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_OBJECT_H
