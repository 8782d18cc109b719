//===- LowerControlFlow.cpp - Structured control flow to branches ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/Loops.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/PatternApplicator.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERCONTROLFLOW
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Copies of the arguments that reductions return: upstream's pattern erases
/// the arguments before it makes the loop yield what a reduction returned.
class ReturnedArguments {
public:
  explicit ReturnedArguments(Operation *root) {
    root->walk([&](scf::ReduceReturnOp result) {
      if (!isa<BlockArgument>(result.getResult()))
        return;
      OpBuilder builder(result);
      copies.push_back(UnrealizedConversionCastOp::create(
          builder, result.getLoc(), result.getResult().getType(),
          result.getResult()));
      result.getResultMutable().assign(copies.back().getResult(0));
    });
  }

  /// Drops the copies, when the loops are lowered.
  ~ReturnedArguments() {
    for (UnrealizedConversionCastOp copy : copies) {
      copy.getResult(0).replaceAllUsesWith(copy.getOperand(0));
      copy.erase();
    }
  }

private:
  SmallVector<UnrealizedConversionCastOp> copies;
};

/// Gives the loops that replace a parallel loop its annotation.
class AnnotationListener : public RewriterBase::Listener {
public:
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) override {
    if (loop && isa<scf::ForOp>(op) && !previous.isSet())
      copyLoopAnnotation(loop, op);
  }

  /// The parallel loop that is lowered, if any.
  Operation *loop = nullptr;
};

struct LowerControlFlow
    : kvcache::impl::LowerControlFlowBase<LowerControlFlow> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSCFToControlFlowConversionPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    PatternApplicator applicator(frozen);
    applicator.applyDefaultCostModel();
    changed = false;
    // These become other loops, whose bodies have one block.
    if (failed(lowerAll<scf::ForallOp>(applicator)) ||
        failed(lowerParallelLoops(applicator)) ||
        failed(lowerAll<scf::ExecuteRegionOp, scf::ForOp, scf::IfOp,
                        scf::IndexSwitchOp, scf::WhileOp>(applicator)))
      signalPassFailure();
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  LogicalResult lowerParallelLoops(PatternApplicator &applicator) {
    ReturnedArguments arguments(getOperation());
    return lowerAll<scf::ParallelOp>(applicator);
  }

  /// Lowers every op of these kinds that has a pattern, from the outside in.
  /// Fails where one is in no function, and so in no list of blocks.
  template <typename... OpTys>
  LogicalResult lowerAll(PatternApplicator &applicator) {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<OpTys...>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(kvcache::checkInFunction(op)))
        return failure();
    changed |= !ops.empty();
    PatternRewriter rewriter(&getContext());
    AnnotationListener listener;
    rewriter.setListener(&listener);
    for (Operation *op : llvm::reverse(ops)) {
      rewriter.setInsertionPoint(op);
      listener.loop = isa<scf::ParallelOp>(op) ? op : nullptr;
      (void)applicator.matchAndRewrite(op, rewriter);
    }
    return success();
  }

  bool changed = false;
};

} // namespace
