//===- Source.h - A parsed module and its context ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_SOURCE_H
#define KVCACHE_COMPILE_SOURCE_H

#include "kvcache/Compile/Contexts.h"
#include "kvcache/Compile/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class OpPassManager;
class PassManager;
} // namespace mlir

namespace mlir::kvcache {

/// Returns the registry of all dialects, which contexts copy.
const DialectRegistry &getRegistry();

/// The contents of a source: a module with caches, or kernels.
enum class SourceKind {
  /// Text or bytecode of MLIR.
  MLIR,
  /// That, or LLVM IR of another compiler, as text or bitcode.
  Kernels
};

/// A module with a context that no other has, so that several threads can
/// compile at the same time.
class Source {
public:
  /// Parses a source. `filename` is its name in locations. In MLIR text, the
  /// names of function arguments become attributes `kvcache.name`.
  Source(StringRef contents, StringRef filename,
         SourceKind kind = SourceKind::MLIR);

  /// The module; null if the source has errors.
  ModuleOp getModule() { return *module; }
  /// Runs passes, as in `kvcache-bounds-checks,kvcache-to-cpu`, on the module.
  /// On failure, the diagnostics have at least one error. The pass manager does
  /// not verify after each pass; the passes must verify where needed.
  LogicalResult run(StringRef passes);
  /// Runs the passes that `build` adds.
  LogicalResult run(function_ref<void(OpPassManager &)> build);
  /// Runs the passes that `build` adds, and keeps them for other sources. They
  /// are the same for the same key.
  LogicalResult run(StringRef key, function_ref<void(OpPassManager &)> build);

  DiagnosticCollector &getDiagnostics() { return diagnostics; }

private:
  void parse(StringRef contents, StringRef filename);
  LogicalResult run(PassManager &passManager);

  ContextLease context;
  DiagnosticCollector diagnostics;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_SOURCE_H
