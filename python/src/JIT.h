//===- JIT.h - Modules to functions of this process -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_JIT_H
#define KVCACHE_PYTHON_JIT_H

#include "Emulator.h"
#include "Signature.h"
#include "kvcache/Compile/Source.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kvcache::python {

/// The compiled public functions of a module.
class JIT {
public:
  ~JIT();

  /// How a module is compiled.
  struct Options {
    /// They must leave the LLVM dialect and a C wrapper for every public
    /// function.
    std::string passes;
    /// 0 to 3, for LLVM.
    unsigned optLevel = 2;
    /// Whether the functions of a device that the module calls are those of
    /// the emulator.
    bool useEmulator = false;
  };

  /// The functions of a module, or null on errors.
  struct CreateResult {
    std::unique_ptr<JIT> jit;
    std::vector<DiagnosticRecord> diagnostics;
  };

  static CreateResult create(std::string source, std::string filename,
                             Options options);

  /// The functions, described as a JSON array.
  StringRef getDescription() const { return description; }

  /// The words of the results, or the message of the run-time check that
  /// stopped the call. `launches` is what the emulator has counted, as JSON.
  struct CallResult {
    std::vector<uint64_t> results;
    std::optional<std::string> failedCheck;
    std::string launches;
  };

  /// Calls a function that is described as callable; kernels on the emulator
  /// may access `memory` meanwhile. Any number of threads may. Fails if there
  /// is no such function or the frame has another size.
  std::optional<CallResult> call(StringRef name,
                                 MutableArrayRef<uint64_t> frame,
                                 ArrayRef<MemoryRange> memory) const;

private:
  struct Function {
    CallLayout layout;
    void (*entry)(void **) = nullptr;
  };

  static CreateResult createUnguarded(StringRef contents, StringRef filename,
                                      const Options &options);
  void describeFunctions(ModuleOp module);
  LogicalResult compile(Source &source, const Options &options);
  LogicalResult lookupFunctions(DiagnosticCollector &diagnostics);

  /// Null for modules that don't run on it.
  const Emulator *emulator = nullptr;
  std::unique_ptr<ExecutionEngine> engine;
  /// Makes the emulator forget the module; null where it knows nothing of it.
  void (*unload)(void **) = nullptr;
  llvm::StringMap<Function> functions;
  std::string description;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_JIT_H
