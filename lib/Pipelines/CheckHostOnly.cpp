//===- CheckHostOnly.cpp - Only host code for the CPU ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/Pipelines.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHECKHOSTONLY
#include "kvcache/Pipelines/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct CheckHostOnly : kvcache::impl::CheckHostOnlyBase<CheckHostOnly> {
  void runOnOperation() override {
    for (auto module :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      module.erase();
    WalkResult result = getOperation().walk([](Operation *op) {
      if (!isa<gpu::LaunchFuncOp, gpu::LaunchOp>(op))
        return WalkResult::advance();
      op->emitOpError("can't run on the CPU: write the kernel as nested "
                      "'scf.parallel' loops");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
