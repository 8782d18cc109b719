//===- BackEndErrors.h - Errors of LLVM's back end --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_BACKENDERRORS_H
#define KVCACHE_TARGET_BACKENDERRORS_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/PrettyStackTrace.h"

namespace llvm {
class LLVMContext;
} // namespace llvm

namespace mlir::kvcache {

/// The compilation of a module by LLVM in this thread, for as long as the
/// object lives. Makes errors that LLVM reports into diagnostics of `module`:
/// without a handler, LLVM ends the process.
class BackEndScope {
public:
  /// `target` is the name of the chip.
  BackEndScope(Operation &module, StringRef target);
  ~BackEndScope();
  BackEndScope(const BackEndScope &) = delete;
  BackEndScope &operator=(const BackEndScope &) = delete;

  /// Handles the errors of a context, which must not outlive this object.
  void handleErrorsOf(llvm::LLVMContext &context);

  /// Whether LLVM has reported an error.
  bool hasError() const { return foundError; }

private:
  friend std::string describeFatalError(StringRef reason);
  friend std::string getPlaceOfFatalError();

  Operation &module;
  std::string place, description;
  /// LLVM prints it when it crashes.
  llvm::PrettyStackTraceString inStackTrace;
  BackEndScope *outer;
  bool foundError = false;
};

/// Returns the message for an error on which LLVM ends the process, with the
/// module that this thread compiles, if any:
/// `LLVM can't compile 'kernels' for sm_90: Cannot select: …`.
std::string describeFatalError(StringRef reason);

/// Returns the location of that module, such as `kernel.mlir:3:1: `, or
/// nothing.
std::string getPlaceOfFatalError();

/// Makes this process print fatal errors of LLVM as such a message and exit
/// with status 1. With `abortsWithTrace`, LLVM aborts it with a backtrace.
void exitOnFatalErrors(bool abortsWithTrace);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_BACKENDERRORS_H
