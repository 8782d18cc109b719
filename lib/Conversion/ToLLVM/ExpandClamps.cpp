//===- ExpandClamps.cpp - Bounds of floats by comparisons -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDCLAMPS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct ExpandClamps : kvcache::impl::ExpandClampsBase<ExpandClamps> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (isa<arith::MaxNumFOp>(op))
        expand(op, arith::CmpFPredicate::OGT);
      else if (isa<arith::MinNumFOp>(op))
        expand(op, arith::CmpFPredicate::OLT);
    });
  }

private:
  /// A NaN compares as false, which selects the bound.
  static void expand(Operation *op, arith::CmpFPredicate predicate) {
    Value value = op->getOperand(0), bound = op->getOperand(1);
    APFloat number(0.0f);
    if (!matchPattern(bound, m_ConstantFloat(&number)) || number.isNaN())
      return;
    OpBuilder builder(op);
    Value isInside =
        arith::CmpFOp::create(builder, op->getLoc(), predicate, value, bound);
    Value selected =
        arith::SelectOp::create(builder, op->getLoc(), isInside, value, bound);
    op->getResult(0).replaceAllUsesWith(selected);
    op->erase();
  }
};

} // namespace
