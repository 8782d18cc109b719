//===- LowerControlFlow.cpp - Structured control flow to branches ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"

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

namespace {

struct LowerControlFlow
    : kvcache::impl::LowerControlFlowBase<LowerControlFlow> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSCFToControlFlowConversionPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    PatternApplicator applicator(frozen);
    applicator.applyDefaultCostModel();
    // These become other loops, whose bodies have one block.
    lowerAll<scf::ForallOp>(applicator);
    lowerAll<scf::ParallelOp>(applicator);
    lowerAll<scf::ExecuteRegionOp, scf::ForOp, scf::IfOp, scf::IndexSwitchOp,
             scf::WhileOp>(applicator);
  }

private:
  /// Lowers every op of these kinds that has a pattern, from the outside in.
  template <typename... OpTys> void lowerAll(PatternApplicator &applicator) {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<OpTys...>(op))
        ops.push_back(op);
    });
    PatternRewriter rewriter(&getContext());
    for (Operation *op : llvm::reverse(ops)) {
      rewriter.setInsertionPoint(op);
      (void)applicator.matchAndRewrite(op, rewriter);
    }
  }
};

} // namespace
