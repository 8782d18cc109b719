//===- RowNormalizer.cpp - Results of the sums of a row -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowNormalizer.h"

#include "../ExpandOps/Heads.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

RowOperands RowOperands::get(AttentionOp op) {
  return {op.getOut(),
          op.getLse(),
          op.getMaxLogits(),
          op.getSinks(),
          op.getValueCache() ? op.getValueScale() : op.getKeyScale(),
          op.getOutScale(),
          op.getSinklessLse()};
}

RowOperands RowOperands::get(MergeSplitsOp op) {
  return {op.getOut(),        op.getLse(),        op.getMaxLogits(),
          op.getSinks(),      op.getValueScale(), op.getOutScale(),
          op.getSinklessLse()};
}

RowSum RowNormalizer::addSink(const RowSum &sum, Value queryHead) const {
  if (!operands.sinks)
    return sum;
  Value sink = memref::LoadOp::create(frame.builder, frame.loc, operands.sinks,
                                      queryHead);
  if (!sink.getType().isF32())
    sink = arith::ExtFOp::create(frame.builder, frame.loc,
                                 frame.builder.getF32Type(), sink);
  sink = f.mul(sink, f.constant(llvm::numbers::log2e));
  // Without tokens, the sink is all of the sum, also if it is -inf.
  Value isNone = f.isZero(sum.total);
  Value max = f.select(isNone, sink, f.max(sum.max, sink));
  Value shrink = f.select(isNone, f.constant(0), f.exp2(f.sub(sum.max, max)));
  Value weight = f.select(isNone, f.constant(1), f.exp2(f.sub(sink, max)));
  return {max, f.fma(sum.total, shrink, weight), f.mul(sum.factor, shrink)};
}

Value RowNormalizer::getQuotient(const RowSum &sum, Value head,
                                 Value queryHead) const {
  Value total = sum.total;
  if (Value scale = loadStaticScale(frame, operands.outScale, queryHead))
    total = f.mul(total, scale);
  Value factor = sum.factor;
  if (Value scale = loadStaticScale(frame, operands.valueScale, head))
    factor = f.mul(factor, scale);
  return f.select(f.isZero(sum.total), f.constant(0), f.div(factor, total));
}

Value RowNormalizer::getLogarithm(const RowSum &sum) const {
  Value log =
      f.mul(f.add(sum.max, f.log2(sum.total)), f.constant(llvm::numbers::ln2));
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  return f.select(f.isZero(sum.total), none, log);
}

Value RowNormalizer::getLargestScore(const RowSum &scores, float bias) const {
  Value max = bias == 0 ? scores.max : f.add(scores.max, f.constant(bias));
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  return f.select(f.isZero(scores.total), none,
                  f.mul(max, f.constant(llvm::numbers::ln2)));
}

const RowSum &RowNormalizer::getLseSum(const RowSum &scores,
                                       const RowSum &all) const {
  return operands.hasSinklessLse ? scores : all;
}

void RowNormalizer::storeStatistics(const RowSum &scores, const RowSum &all,
                                    float bias, Value row,
                                    Value queryHead) const {
  auto store = [&](Value memref, function_ref<Value()> compute) {
    if (!memref)
      return;
    frame.runIf(frame.below(row, frame.dim(memref, 0)), [&] {
      memref::StoreOp::create(frame.builder, frame.loc, compute(), memref,
                              ValueRange{row, queryHead});
    });
  };
  store(operands.lse, [&] { return getLogarithm(getLseSum(scores, all)); });
  store(operands.maxLogits, [&] { return getLargestScore(scores, bias); });
}
