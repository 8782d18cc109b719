//===- Context.h - A context for inputs of libFuzzer ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TEST_FUZZ_INPUTS_CONTEXT_H
#define KVCACHE_TEST_FUZZ_INPUTS_CONTEXT_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace mlir::kvcache::fuzz {

/// Returns a context for some thousand inputs: it keeps their types.
inline MLIRContext &getContext() {
  static std::unique_ptr<MLIRContext> context;
  static unsigned uses = 0;
  if (context && ++uses % 5000 != 0)
    return *context;
  context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<KVCacheDialect, func::FuncDialect>();
  context->getDiagEngine().registerHandler([](Diagnostic &) {});
  return *context;
}

} // namespace mlir::kvcache::fuzz

#endif // KVCACHE_TEST_FUZZ_INPUTS_CONTEXT_H
