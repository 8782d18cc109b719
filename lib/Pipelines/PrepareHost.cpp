//===- PrepareHost.cpp - Host code alone, for the CPU --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/KVCache.h"
#include "kvcache/Pipelines/Pipelines.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_PREPAREHOST
#include "kvcache/Pipelines/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct PrepareHost : kvcache::impl::PrepareHostBase<PrepareHost> {
  void runOnOperation() override {
    for (auto module :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      module.erase();
    WalkResult result = getOperation().walk([](Operation *op) {
      if (!op->isRegistered()) {
        op->emitError("unregistered operation '")
            << op->getName() << "' has no lowering";
        return WalkResult::interrupt();
      }
      if (!isa<gpu::LaunchFuncOp, gpu::LaunchOp>(op))
        return WalkResult::advance();
      op->emitOpError("can't run on the CPU: write the kernel as nested "
                      "'scf.parallel' loops");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    // Only kernels have use for names, and LLVM doesn't know them.
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      for (unsigned index = 0; index < function.getNumArguments(); ++index)
        function.removeArgAttr(index, kvcache::KVCacheDialect::kArgNameAttr);
  }
};

} // namespace
