//===- Contexts.h - Contexts that are used again ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_COMPILE_CONTEXTS_H
#define KVCACHE_COMPILE_CONTEXTS_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"

#include <memory>

namespace mlir {
class PassManager;
} // namespace mlir

namespace mlir::kvcache {

/// A context with its dialects, and pipelines with their patterns: to make
/// them takes as long as to compile a small module.
class WarmContext {
public:
  WarmContext();
  ~WarmContext();

  MLIRContext *get() { return &context; }

  /// Returns the passes of a pipeline, as in `cse,kvcache-to-cpu`. Returns null
  /// and adds to `message` if the text names none.
  PassManager *getPipeline(StringRef passes, std::string &message);

  /// Returns the passes that `build` adds, which are the same for the same key.
  /// No key is a text of a pipeline.
  PassManager &getPipeline(StringRef key,
                           function_ref<void(OpPassManager &)> build);

private:
  friend struct ContextReturn;
  friend class ContextPool;

  MLIRContext context;
  llvm::StringMap<std::unique_ptr<PassManager>> pipelines;
  /// Whether others may have it: not with names that have a meaning.
  bool isShared = true;
  /// The sources that it has seen, and keeps types and locations of.
  unsigned numSources = 0;
  size_t numBytes = 0;
};

/// Gives a context back, for the next use.
struct ContextReturn {
  void operator()(WarmContext *context) const;
};

using ContextLease = std::unique_ptr<WarmContext, ContextReturn>;

/// Returns an unused context for a source. It has not seen a source
/// that could give a name a meaning.
ContextLease leaseContext(StringRef contents);

} // namespace mlir::kvcache

#endif // KVCACHE_COMPILE_CONTEXTS_H
