//===- JIT.h - Modules to functions of this process -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_JIT_H
#define KVCACHE_PYTHON_JIT_H

#include "Signature.h"
#include "Source.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kvcache::python {

/// The compiled public functions of a module.
class JIT {
public:
  /// The functions of a module, or null on errors.
  struct CreateResult {
    std::unique_ptr<JIT> jit;
    std::vector<DiagnosticRecord> diagnostics;
  };

  /// Compiles a module after running `passes`, which must leave the LLVM
  /// dialect and a C wrapper for every public function.
  static CreateResult create(std::string source, std::string filename,
                             std::string passes, unsigned optLevel);

  /// The functions, described as a JSON array.
  StringRef getDescription() const { return description; }

  /// The words of the results, or the message of the run-time check that
  /// stopped the call.
  struct CallResult {
    std::vector<uint64_t> results;
    std::optional<std::string> failedCheck;
  };

  /// Calls a function that is described as callable. Any number of threads may.
  /// Fails if there is no such function or the frame has another size.
  std::optional<CallResult> call(StringRef name,
                                 MutableArrayRef<uint64_t> frame) const;

private:
  struct Function {
    CallLayout layout;
    void (*entry)(void **) = nullptr;
  };

  static CreateResult createUnguarded(StringRef contents, StringRef filename,
                                      StringRef passes, unsigned optLevel);
  void describeFunctions(ModuleOp module);
  LogicalResult compile(Source &source, unsigned optLevel);

  std::unique_ptr<ExecutionEngine> engine;
  llvm::StringMap<Function> functions;
  std::string description;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_JIT_H
