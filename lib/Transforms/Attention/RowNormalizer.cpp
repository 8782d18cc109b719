//===- RowNormalizer.cpp - Normalization of a row's results ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowNormalizer.h"

#include "../Builders/Heads.h"

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

RowState RowNormalizer::addSink(const RowState &state, Value queryHead) const {
  if (!operands.sinks)
    return state;
  Value sink = memref::LoadOp::create(frame.builder, frame.loc, operands.sinks,
                                      queryHead);
  if (!sink.getType().isF32())
    sink = arith::ExtFOp::create(frame.builder, frame.loc,
                                 frame.builder.getF32Type(), sink);
  sink = f.mul(sink, f.constant(llvm::numbers::log2e));
  // Without tokens, the sink is all of the row's sum, also if it is -inf.
  Value isNone = f.isZero(state.rowSum);
  Value max = f.select(isNone, sink, f.max(state.rowMax, sink));
  Value shrink =
      f.select(isNone, f.constant(0), f.exp2(f.sub(state.rowMax, max)));
  Value sinkSum = f.select(isNone, f.constant(1), f.exp2(f.sub(sink, max)));
  return {max, f.fma(state.rowSum, shrink, sinkSum),
          f.mul(state.factor, shrink)};
}

Value RowNormalizer::getQuotient(const RowState &state, Value head,
                                 Value queryHead) const {
  Value rowSum = state.rowSum;
  if (Value scale = loadStaticScale(frame, operands.outScale, queryHead))
    rowSum = f.mul(rowSum, scale);
  Value factor = state.factor;
  if (Value scale = loadStaticScale(frame, operands.valueScale, head))
    factor = f.mul(factor, scale);
  return f.select(f.isZero(state.rowSum), f.constant(0), f.div(factor, rowSum));
}

Value RowNormalizer::getLogarithm(const RowState &state) const {
  Value log = f.mul(f.add(state.rowMax, f.log2(state.rowSum)),
                    f.constant(llvm::numbers::ln2));
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  return f.select(f.isZero(state.rowSum), none, log);
}

Value RowNormalizer::getLargestScore(const RowState &scores, float bias) const {
  Value max =
      bias == 0 ? scores.rowMax : f.add(scores.rowMax, f.constant(bias));
  Value none = f.constant(-std::numeric_limits<float>::infinity());
  return f.select(f.isZero(scores.rowSum), none,
                  f.mul(max, f.constant(llvm::numbers::ln2)));
}

const RowState &RowNormalizer::getLseState(const RowState &scores,
                                           const RowState &all) const {
  return operands.hasSinklessLse ? scores : all;
}

void RowNormalizer::storeStatistics(const RowState &scores, const RowState &all,
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
  store(operands.lse, [&] { return getLogarithm(getLseState(scores, all)); });
  store(operands.maxLogits, [&] { return getLargestScore(scores, bias); });
}
