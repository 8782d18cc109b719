//===- WorkaroundE8M0Folding.cpp - Prevent wrong folds of scales ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/Powers.h"

#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_WORKAROUNDE8M0FOLDING
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct WorkaroundE8M0Folding
    : kvcache::impl::WorkaroundE8M0FoldingBase<WorkaroundE8M0Folding> {
  void runOnOperation() override {
    getOperation()->walk([](arith::ExtFOp op) {
      OpBuilder builder(op);
      op.getInMutable().assign(
          kvcache::makeOpaque(builder, op.getLoc(), op.getIn()));
    });
    // This driver doesn't fold.
    RewritePatternSet patterns(&getContext());
    kvcache::narrow::populatePowerPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
