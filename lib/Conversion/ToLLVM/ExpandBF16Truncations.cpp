//===- ExpandBF16Truncations.cpp - Vectors of f32 to bf16 -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDBF16TRUNCATIONS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

/// Whether the op truncates a vector of f32 to bf16, to nearest even.
static bool isExpanded(arith::TruncFOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  constexpr auto nearest = arith::RoundingMode::to_nearest_even;
  return type && type.getRank() == 1 && !type.isScalable() &&
         type.getElementType().isBF16() &&
         cast<VectorType>(op.getIn().getType()).getElementType().isF32() &&
         op.getRoundingmode().value_or(nearest) == nearest;
}

namespace {

struct ExpandBF16Truncations
    : kvcache::impl::ExpandBF16TruncationsBase<ExpandBF16Truncations> {
  void runOnOperation() override {
    getOperation()->walk([](arith::TruncFOp op) {
      if (isExpanded(op))
        expand(op);
    });
  }

private:
  static void expand(arith::TruncFOp op) {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    Value in = op.getIn();
    VectorType bits =
        cast<VectorType>(in.getType()).clone(builder.getI32Type());
    auto constant = [&](int64_t number) {
      return createScalarOrSplatConstant(builder, builder.getLoc(), bits,
                                         number);
    };
    Value word = arith::BitcastOp::create(builder, bits, in);
    // Half of the last place, or just less if that place is even.
    Value last = arith::ShRUIOp::create(builder, word, constant(16));
    last = arith::AndIOp::create(builder, last, constant(1));
    Value sum = arith::AddIOp::create(builder, word, constant(0x7fff));
    sum = arith::AddIOp::create(builder, sum, last);
    Value isNaN =
        arith::CmpFOp::create(builder, arith::CmpFPredicate::UNO, in, in);
    sum = arith::SelectOp::create(builder, isNaN, constant(0x7fc00000), sum);
    // A permutation of words, instead of shifts and truncations of integers.
    auto halves =
        VectorType::get(2 * bits.getNumElements(), builder.getBF16Type());
    Value pairs = vector::BitCastOp::create(builder, halves, sum);
    auto parts = vector::DeinterleaveOp::create(builder, pairs);
    op.replaceAllUsesWith(parts.getRes2());
    op.erase();
  }
};

} // namespace
