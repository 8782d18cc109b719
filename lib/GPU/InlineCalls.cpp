//===- InlineCalls.cpp - Inline calls where there are any -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_INLINECALLS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct InlineCalls : kvcache::impl::InlineCallsBase<InlineCalls> {
  void runOnOperation() override {
    if (!hasCallsOrPrivateSymbols())
      return markAllAnalysesPreserved();
    OpPassManager passes(ModuleOp::getOperationName());
    passes.addPass(createInlinerPass({}, [](OpPassManager &) {}));
    passes.nest<gpu::GPUModuleOp>().addPass(kvcache::createInlineIntoKernels());
    passes.addPass(createSymbolDCEPass());
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }

private:
  bool hasCallsOrPrivateSymbols() {
    return getOperation()
        ->walk([](Operation *op) {
          auto symbol = dyn_cast<SymbolOpInterface>(op);
          return isa<CallOpInterface>(op) || (symbol && !symbol.isPublic())
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }
};

} // namespace
