//===- LowerMath.cpp - Lower math, where there is some --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"

#include "mlir/Conversion/MathToFuncs/MathToFuncs.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERMATH
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct LowerMath : kvcache::impl::LowerMathBase<LowerMath> {
  void getDependentDialects(DialectRegistry &registry) const override {
    makePasses().getDependentDialects(registry);
  }

  void runOnOperation() override {
    WalkResult found = getOperation().walk([](Operation *op) {
      return isa_and_present<math::MathDialect>(op->getDialect())
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      return markAllAnalysesPreserved();
    OpPassManager passes = makePasses();
    if (failed(callForSmallOperands()) ||
        failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }

private:
  /// Calls the math library for exp(x) - 1 and log(1 + x). LLVM has no
  /// intrinsics of these, and upstream's differences cancel near 0.
  LogicalResult callForSmallOperands() {
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<math::ExpM1Op, math::Log1pOp>();
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }

  static OpPassManager makePasses() {
    OpPassManager passes(ModuleOp::getOperationName());
    passes.addPass(createConvertMathToFuncs());
    // What LLVM has intrinsics for goes first; the math library has the rest.
    passes.addPass(createConvertMathToLLVMPass());
    passes.addPass(createConvertMathToLibmPass());
    return passes;
  }
};

} // namespace
