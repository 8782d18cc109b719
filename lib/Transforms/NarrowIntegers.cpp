//===- NarrowIntegers.cpp - Arithmetic of 32 bits where it fits -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/GreedyRewrite.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_NARROWINTEGERS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Forgets what is known of a value that is gone: another may take its address.
class RangeListener : public RewriterBase::Listener {
public:
  explicit RangeListener(DataFlowSolver &solver) : solver(solver) {}

  void notifyOperationErased(Operation *op) override {
    solver.eraseState(solver.getProgramPointAfter(op));
    for (Value result : op->getResults())
      solver.eraseState(result);
  }

private:
  DataFlowSolver &solver;
};

struct NarrowIntegers : kvcache::impl::NarrowIntegersBase<NarrowIntegers> {
  void runOnOperation() override {
    DataFlowSolver solver;
    dataflow::loadBaselineAnalyses(solver);
    solver.load<dataflow::IntegerRangeAnalysis>();
    if (failed(solver.initializeAndRun(getOperation())))
      return signalPassFailure();
    RangeListener listener(solver);

    RewritePatternSet folding(&getContext());
    arith::populateIntRangeOptimizationsPatterns(folding, solver);
    walkAndApplyPatterns(getOperation(), std::move(folding), &listener);

    RewritePatternSet narrowing(&getContext());
    arith::populateIntRangeNarrowingPatterns(narrowing, solver, {32});
    // A comparison needs the ranges of its operands before they are narrowed.
    GreedyRewriteConfig config = getGreedyRewriteConfig();
    config.setUseTopDownTraversal(false).setListener(&listener);
    if (failed(applyPatternsGreedily(getOperation(), std::move(narrowing),
                                     config)))
      signalPassFailure();
  }
};

} // namespace
