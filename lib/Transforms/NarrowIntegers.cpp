//===- NarrowIntegers.cpp - Narrow arithmetic to 32 bits ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/GreedyRewrite.h"
#include "kvcache/Support/UpstreamDefects.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_NARROWINTEGERS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Updates the ranges of the solver with the IR. A replacement has the range of
/// the replaced value. The state of an erased value is erased, because another
/// value may reuse its address.
class RangeListener : public RewriterBase::Listener {
public:
  RangeListener(DataFlowSolver &solver, int64_t &numReplaced)
      : solver(solver), numReplaced(numReplaced) {}

  void notifyOperationReplaced(Operation *op, ValueRange values) override {
    ++numReplaced;
    using Lattice = dataflow::IntegerValueRangeLattice;
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      if (const auto *range = solver.lookupState<Lattice>(result))
        (void)solver.getOrCreateState<Lattice>(value)->join(*range);
  }

  void notifyOperationErased(Operation *op) override {
    solver.eraseState(solver.getProgramPointAfter(op));
    for (Value result : op->getResults())
      solver.eraseState(result);
  }

private:
  DataFlowSolver &solver;
  int64_t &numReplaced;
};

/// Converts the right shift of a nonnegative value to an unsigned shift.
class ShiftUnsigned : public OpRewritePattern<arith::ShRSIOp> {
public:
  ShiftUnsigned(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context), solver(solver) {}

  LogicalResult matchAndRewrite(arith::ShRSIOp op,
                                PatternRewriter &rewriter) const override {
    if (failed(dataflow::staticallyNonNegative(solver, op.getLhs())))
      return rewriter.notifyMatchFailure(op, "may be negative");
    rewriter.replaceOpWithNewOp<arith::ShRUIOp>(op, op.getLhs(), op.getRhs());
    return success();
  }

private:
  DataFlowSolver &solver;
};

/// Marks operands of branches that are no integers as unknown, or the analysis
/// of dead code takes no branch. Upstream's propagation of constants finds them
/// by folding each op; integers become constants by their ranges.
void markUnknownOperands(Operation *code, DataFlowSolver &solver) {
  using Lattice = dataflow::Lattice<dataflow::ConstantValue>;
  code->walk([&](Operation *op) {
    if (!isa<RegionBranchOpInterface, RegionBranchTerminatorOpInterface,
             BranchOpInterface>(op))
      return;
    for (Value operand : op->getOperands())
      if (!operand.getType().isIntOrIndex())
        (void)solver.getOrCreateState<Lattice>(operand)->join(
            dataflow::ConstantValue::getUnknownConstant());
  });
}

/// Returns the ops of integers, except constants.
SmallVector<Operation *> findIntegerOps(Operation *code) {
  auto isInteger = [](Type type) {
    return getElementTypeOrSelf(type).isIntOrIndex();
  };
  SmallVector<Operation *> found;
  code->walk([&](Operation *op) {
    if (!op->hasTrait<OpTrait::ConstantLike>() &&
        (llvm::any_of(op->getOperandTypes(), isInteger) ||
         llvm::any_of(op->getResultTypes(), isInteger)))
      found.push_back(op);
  });
  return found;
}

struct NarrowIntegers : kvcache::impl::NarrowIntegersBase<NarrowIntegers> {
  void runOnOperation() override {
    // Through calls, what a function that calls itself gets has a range that
    // grows by one number at a time.
    DataFlowSolver solver(DataFlowConfig().setInterprocedural(false));
    solver.load<dataflow::DeadCodeAnalysis>();
    solver.load<dataflow::IntegerRangeAnalysis>();
    markUnknownOperands(getOperation(), solver);
    if (failed(solver.initializeAndRun(getOperation())))
      return signalPassFailure();
    int64_t count = 0;
    RangeListener listener(solver, count);

    // Upstream narrows a signed op also if its operands fit only as unsigned
    // numbers, where the op must be unsigned. So convert signed ops first.
    RewritePatternSet folding(&getContext());
    if (upstream::narrowsSignedOps)
      arith::populateUnsignedWhenEquivalentPatterns(folding, solver);
    folding.add<ShiftUnsigned>(&getContext(), solver);
    arith::populateIntRangeOptimizationsPatterns(folding, solver);
    walkAndApplyPatterns(getOperation(), std::move(folding), &listener);

    RewritePatternSet narrowing(&getContext());
    arith::populateIntRangeNarrowingPatterns(narrowing, solver, {32});
    // Comparisons need the ranges of their operands before narrowing.
    // What a rewrite may affect is visited again.
    GreedyRewriteConfig config = getGreedyRewriteConfig();
    config.setListener(&listener);
    (void)applyOpPatternsGreedily(findIntegerOps(getOperation()),
                                  std::move(narrowing), config);
    numReplaced += count;
    if (count > 0)
      remark::passed(getOperation()->getLoc(),
                     remark::RemarkOpts::name("integers")
                         .category("kvcache-narrow-integers"))
          << "operations narrowed or folded" << remark::metric("Count", count);
  }
};

} // namespace
