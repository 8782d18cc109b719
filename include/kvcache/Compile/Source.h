//===- Source.h - A parsed module and its context ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_SOURCE_H
#define KVCACHE_COMPILE_SOURCE_H

#include "kvcache/Compile/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace mlir::kvcache {

/// All dialects, in one registry that contexts copy.
const DialectRegistry &getRegistry();

/// Returns the first bracket in a text that is nested too deep for the parser,
/// or null. Strings and comments are skipped.
const char *findDeepNesting(StringRef text);

/// What is to be said of such a bracket.
std::string getNestingError();

/// A module parsed into a context of its own, so that any number of threads can
/// compile at a time.
class Source {
public:
  /// Parses MLIR text or bytecode. `filename` is its name in locations. The
  /// names of function arguments in a text become attributes `kvcache.name`.
  Source(StringRef contents, StringRef filename);

  /// The module; null if the source has errors.
  ModuleOp getModule() { return *module; }
  /// Runs passes, as in `kvcache-bounds-checks,kvcache-to-cpu`, on the module.
  /// A failure always leaves an error among the diagnostics.
  LogicalResult run(StringRef passes);
  /// The same with the passes that `build` adds, which verify what they make
  /// where they have to.
  LogicalResult run(function_ref<void(OpPassManager &)> build);

  DiagnosticCollector &getDiagnostics() { return diagnostics; }

private:
  void parse(StringRef contents, StringRef filename);
  LogicalResult run(PassManager &passManager);

  MLIRContext context;
  DiagnosticCollector diagnostics;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_SOURCE_H
