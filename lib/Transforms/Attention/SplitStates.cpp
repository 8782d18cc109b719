//===- SplitStates.cpp - The states of splits, and their sum --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitStates.h"

#include "../Builders/Heads.h"

using namespace mlir;
using namespace mlir::kvcache;

SplitState SplitAdder::getNone() const {
  return {f.constant(kLowest), f.constant(0), f.constant(f.vectorOf(width), 0)};
}

SplitState SplitAdder::add(ArrayRef<SplitState> splits) const {
  SplitState all = getNone();
  all.rowMax = splits.front().rowMax;
  for (const SplitState &split : splits.drop_front())
    all.rowMax = f.max(all.rowMax, split.rowMax);
  for (const SplitState &split : splits) {
    Value rescale = f.exp2(f.sub(split.rowMax, all.rowMax));
    all.rowSum = f.fma(rescale, split.rowSum, all.rowSum);
    all.acc = f.fma(f.splat(rescale, width), split.acc, all.acc);
  }
  return all;
}

SplitState SplitAdder::selectIf(Value condition,
                                const SplitState &split) const {
  SplitState none = getNone();
  return {f.select(condition, split.rowMax, none.rowMax),
          f.select(condition, split.rowSum, none.rowSum),
          f.select(condition, split.acc, none.acc)};
}

void kvcache::storeMerged(const Frame &frame, const RowOperands &operands,
                          const SplitState &state, const MergedPlace &place,
                          float bias) {
  DeviceMath f(frame);
  RowNormalizer normalizer(frame, operands);
  RowState scores{state.rowMax, state.rowSum, f.constant(1)};
  RowState all = normalizer.addSink(scores, place.queryHead);
  Value quotient = normalizer.getQuotient(all, place.head, place.queryHead);
  int64_t width = cast<VectorType>(state.acc.getType()).getNumElements();
  storeDense(frame, f.mul(state.acc, f.splat(quotient, width)), operands.out,
             {place.row, place.queryHead}, place.d);
  frame.runIf(frame.equal(place.d, frame.index(0)), [&] {
    normalizer.storeStatistics(scores, all, bias, place.row, place.queryHead);
  });
}
