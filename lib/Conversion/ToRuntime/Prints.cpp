//===- Prints.cpp - Prints of host code -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/PrintArguments.h"
#include "kvcache/Support/RuntimeCalls.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERPRINTS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The calls of `kvcachePrint` in one module.
class PrintCalls {
public:
  explicit PrintCalls(ModuleOp module) : runtime(module) {}

  LogicalResult lower(gpu::PrintfOp op) {
    FailureOr<PrintArguments> arguments = getPrintArguments(op);
    if (failed(arguments))
      return failure();
    OpBuilder builder(op);
    SmallVector<Value> operands = {
        runtime.getString(builder, op.getLoc(), arguments->format)};
    llvm::append_range(operands, arguments->operands);
    LLVM::LLVMFuncOp print =
        runtime.declare("kvcachePrint", /*resultType=*/{},
                        operands.front().getType(), /*isVarArg=*/true);
    LLVM::CallOp::create(builder, op.getLoc(), print, operands);
    op.erase();
    return success();
  }

private:
  RuntimeCalls runtime;
};

struct LowerPrints : kvcache::impl::LowerPrintsBase<LowerPrints> {
  void runOnOperation() override {
    // Modules may nest, and each needs strings and a declaration of its own.
    llvm::MapVector<ModuleOp, SmallVector<gpu::PrintfOp>> prints;
    getOperation().walk([&](gpu::PrintfOp op) {
      if (!isInGPUCode(op))
        prints[op->getParentOfType<ModuleOp>()].push_back(op);
    });
    for (auto &[module, ops] : prints) {
      PrintCalls calls(module);
      for (gpu::PrintfOp op : ops)
        if (failed(calls.lower(op)))
          return signalPassFailure();
    }
  }
};

} // namespace
