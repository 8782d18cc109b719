//===- BackEndErrors.h - Errors of LLVM's back end --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_BACKENDERRORS_H
#define KVCACHE_TARGET_BACKENDERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <functional>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
} // namespace llvm

namespace mlir::kvcache {

/// The errors that LLVM reports while it compiles a module. Without a handler,
/// LLVM ends the process.
class BackEndErrors {
public:
  /// `target` is the name of the chip.
  BackEndErrors(Operation &module, StringRef target);

  /// Keeps the errors and warnings of a context, which must not outlive this
  /// object.
  void handleErrorsOf(llvm::LLVMContext &context);

  /// Keeps an error or a warning about the module.
  void addError(const Twine &text);
  void addWarning(const Twine &text);

  /// Whether there is an error.
  bool hasError() const;

  /// Makes diagnostics of `module` of them. Only one thread at a time may emit
  /// diagnostics.
  void emit();

private:
  friend class BackEndScope;
  friend std::string describeFatalError(StringRef reason);
  friend std::string getPlaceOfFatalError();

  struct Found {
    DiagnosticSeverity severity;
    /// The function that LLVM names, or nothing.
    std::string function;
    std::string text;
  };

  Operation &module;
  std::string place, description;
  std::vector<Found> found;
};

/// The compilation of a module by LLVM in this thread, for as long as the
/// object lives. Messages of fatal errors name the module.
class BackEndScope {
public:
  explicit BackEndScope(const BackEndErrors &errors);
  ~BackEndScope();
  BackEndScope(const BackEndScope &) = delete;
  BackEndScope &operator=(const BackEndScope &) = delete;

private:
  /// LLVM prints it when it crashes.
  llvm::PrettyStackTraceString inStackTrace;
  const BackEndErrors *outer;
};

/// Returns the message for an error on which LLVM ends the process, with the
/// module that this thread compiles, if any:
/// `LLVM can't compile 'kernels' for sm_90: Cannot select: …`.
std::string describeFatalError(StringRef reason);

/// Returns the location of that module, such as `kernel.mlir:3:1: `, or
/// nothing.
std::string getPlaceOfFatalError();

/// Receives the message of a fatal error of LLVM, after which the thread stops
/// forever.
using FatalErrorHandler = std::function<void(std::string message)>;

/// Handles the fatal errors of this thread, and of those that `runInThreads`
/// starts, for as long as the object lives.
class FatalErrorScope {
public:
  explicit FatalErrorScope(const FatalErrorHandler &handler);
  ~FatalErrorScope();
  FatalErrorScope(const FatalErrorScope &) = delete;
  FatalErrorScope &operator=(const FatalErrorScope &) = delete;

private:
  const FatalErrorHandler *outer;
};

/// Returns the handler of this thread, or null.
const FatalErrorHandler *getFatalErrorHandler();

/// Makes this process print fatal errors of LLVM as such a message and exit
/// with status 1. With `abortsWithTrace`, LLVM aborts it with a backtrace.
void exitOnFatalErrors(bool abortsWithTrace);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_BACKENDERRORS_H
