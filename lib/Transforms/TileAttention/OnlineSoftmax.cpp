//===- OnlineSoftmax.cpp - The softmax of tiles of scores -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineSoftmax.h"

#include "../ExpandOps/Attention.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

SoftmaxState OnlineSoftmax::begin(FragmentType acc) const {
  Value zero = f.constant(0);
  return SoftmaxState({b.splat(acc.getRowType(), f.constant(kLowest)),
                       b.splat(acc.getRowType(/*isPartial=*/true), zero),
                       b.splat(acc, zero)});
}

SoftmaxState OnlineSoftmax::forTiles(
    FragmentType acc, Value tiles, Schedule schedule,
    function_ref<void(Value tile, SoftmaxState &)> addTile) const {
  OpBuilder &builder = f.builder;
  auto makeIndex = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, f.loc, value);
  };
  auto loop = scf::ForOp::create(
      builder, f.loc, makeIndex(0), tiles, makeIndex(1), begin(acc).getValues(),
      [&](OpBuilder &, Location, Value tile, ValueRange all) {
        SoftmaxState state(all);
        addTile(tile, state);
        scf::YieldOp::create(builder, f.loc, state.getValues());
      });
  loop->setAttr("kvcache.schedule",
                ScheduleAttr::get(builder.getContext(), schedule));
  return SoftmaxState(loop.getResults());
}

SmallVector<Value> OnlineSoftmax::withFactor(ArrayRef<Value> fragments) const {
  SmallVector<Value> all(fragments);
  if (factor)
    all.push_back(factor);
  return all;
}

// Beside the lowest number, a factor above 1 would make -inf, and then a score
// of -inf minus it NaN.
Value OnlineSoftmax::toExponent(ValueRange scoreAndFactor) const {
  if (!factor)
    return scoreAndFactor[0];
  return f.max(f.mul(scoreAndFactor[0], scoreAndFactor[1]), kLowest);
}

// Weights become an operand first: ptxas then takes fewer registers.
Value OnlineSoftmax::addScores(Value scores, FragmentType operand,
                               SoftmaxState &state) const {
  auto type = cast<FragmentType>(scores.getType());
  Value max =
      b.reduce(Reduction::MaxNumF, scores, state.max, type.getRowType());
  Value shift = b.map(withFactor({max}), [&](ValueRange row) {
    Value exponent = toExponent(row);
    return bias ? f.sub(f.constant(bias), exponent) : f.negate(exponent);
  });
  Value weights = b.map(withFactor({scores, shift}), [&](ValueRange element) {
    return f.exp2(factor ? f.fma(element[0], element[2], element[1])
                         : f.add(element[0], element[1]));
  });
  Value left = ToOperandOp::create(f.builder, f.loc, operand, weights);
  Value rescale = b.map(withFactor({state.max, max}), [&](ValueRange row) {
    Value difference = f.sub(row[0], row[1]);
    return f.exp2(factor ? f.mul(difference, row[2]) : difference);
  });
  state.max = max;
  state.sum = b.reduce(Reduction::AddF, weights, b.multiply(state.sum, rescale),
                       type.getRowType(/*isPartial=*/true));
  state.acc = b.multiply(state.acc, rescale);
  return left;
}

Value OnlineSoftmax::getReference(const SoftmaxState &state) const {
  return b.map(withFactor({state.max}), [&](ValueRange row) {
    Value exponent = toExponent(row);
    return bias ? f.sub(exponent, f.constant(bias)) : exponent;
  });
}

Value OnlineSoftmax::getTotal(const SoftmaxState &state) const {
  return b.reduce(Reduction::AddF, state.sum, /*init=*/Value(),
                  cast<FragmentType>(state.max.getType()));
}
