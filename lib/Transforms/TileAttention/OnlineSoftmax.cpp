//===- OnlineSoftmax.cpp - The softmax of tiles of scores -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnlineSoftmax.h"

#include "../Attention/RowNormalizer.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

SoftmaxState OnlineSoftmax::beginRows(FragmentType fragment) const {
  return SoftmaxState(
      {b.splat(fragment.getRowType(), f.constant(kLowest)),
       b.splat(fragment.getRowType(/*isPartial=*/true), f.constant(0))});
}

SoftmaxState OnlineSoftmax::begin(FragmentType acc) const {
  SoftmaxState state = beginRows(acc);
  state.products.push_back(b.splat(acc, f.constant(0)));
  return state;
}

SmallVector<Value> OnlineSoftmax::forTiles(
    ValueRange first, Value tiles, Schedule schedule,
    function_ref<void(Value, SmallVector<Value> &)> body) const {
  OpBuilder &builder = f.builder;
  auto makeIndex = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, f.loc, value);
  };
  auto loop = scf::ForOp::create(
      builder, f.loc, makeIndex(0), tiles, makeIndex(1), first,
      [&](OpBuilder &, Location, Value tile, ValueRange carried) {
        SmallVector<Value> values(carried);
        b.keepThread([&] { body(tile, values); });
        scf::YieldOp::create(builder, f.loc, values);
      });
  loop->setAttr(KVCacheDialect::kScheduleAttr,
                ScheduleAttr::get(builder.getContext(), schedule));
  return SmallVector<Value>(loop.getResults());
}

SoftmaxState OnlineSoftmax::forTiles(const SoftmaxState &first, Value tiles,
                                     Schedule schedule, AddTile addTile) const {
  return SoftmaxState(forTiles(first.getValues(), tiles, schedule,
                               [&](Value tile, SmallVector<Value> &values) {
                                 SoftmaxState state(values);
                                 addTile(tile, state);
                                 values = state.getValues();
                               }));
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

Value OnlineSoftmax::findMax(Value scores, const SoftmaxState &state) const {
  Value max =
      b.reduce(Reduction::MaxNumF, scores, state.rowMax,
               cast<FragmentType>(scores.getType()).getRowType(), scratch);
  return join ? join(Reduction::MaxNumF, max) : max;
}

Value OnlineSoftmax::computeProbs(Value scores, Value max) const {
  Value shift = b.map(withFactor({max}), [&](ValueRange row) {
    Value exponent = toExponent(row);
    return bias ? f.sub(f.constant(bias), exponent) : f.negate(exponent);
  });
  FragmentOrigin origin;
  if (hasPolynomials)
    origin.row = origin.column =
        arith::ConstantIndexOp::create(f.builder, f.loc, 0);
  return b.map(
      withFactor({scores, shift}),
      [&](ValueRange element) {
        return computeProb(factor ? f.fma(element[0], element[2], element[1])
                                  : f.add(element[0], element[1]),
                           hasPolynomials ? element.back() : Value());
      },
      origin);
}

// A multiprocessor computes 16 powers in a clock, as many as two products of
// 128 elements need. Columns are constants of a thread, so each has one of both
// ways. Pairs of columns are side by side.
Value OnlineSoftmax::computeProb(Value exponent, Value column) const {
  if (!column)
    return f.exp2(exponent);
  constexpr int64_t columns = 10, polynomials = 2;
  IndexBuilder i(f.builder, f.loc);
  Value isPolynomial = i.below(i.rem(column, columns), i.index(polynomials));
  return f.select(isPolynomial, f.exp2Cubic(exponent), f.exp2(exponent));
}

Value OnlineSoftmax::computeRescale(Value before, Value max) const {
  return b.map(withFactor({before, max}), [&](ValueRange row) {
    Value difference = f.sub(row[0], row[1]);
    return f.exp2(factor ? f.mul(difference, row[2]) : difference);
  });
}

void OnlineSoftmax::addProbs(Value probs, Value rescale, Value max,
                             SoftmaxState &state) const {
  state.rowMax = max;
  state.rowSum = b.reduce(
      Reduction::AddF, probs, b.multiply(state.rowSum, rescale),
      cast<FragmentType>(probs.getType()).getRowType(/*isPartial=*/true));
}

// Probs are used first: ptxas then takes fewer registers.
Value OnlineSoftmax::addScores(Value scores, SoftmaxState &state,
                               function_ref<Value(Value)> use) const {
  Value max = findMax(scores, state);
  Value probs = computeProbs(scores, max);
  Value used = use(probs);
  Value rescale = computeRescale(state.rowMax, max);
  addProbs(probs, rescale, max, state);
  state.getAcc() = b.multiply(state.getAcc(), rescale);
  return used;
}

TileProbs OnlineSoftmax::addRows(Value scores, SoftmaxState &state) const {
  Value max = findMax(scores, state);
  Value probs = computeProbs(scores, max);
  Value rescale = computeRescale(state.rowMax, max);
  addProbs(probs, rescale, max, state);
  return {probs, rescale};
}

Value OnlineSoftmax::raiseMax(Value max, SoftmaxState &state) const {
  Value rescale = computeRescale(state.rowMax, max);
  state.rowMax = max;
  state.rowSum = b.multiply(state.rowSum, rescale);
  return rescale;
}

LazyProbs OnlineSoftmax::addScoresLazily(Value scores, float slack,
                                         SoftmaxState &state) const {
  Value largest = findMax(scores, state);
  Value grows = b.map(
      withFactor({largest, state.rowMax}),
      [&](ValueRange row) -> Value {
        Value growth = f.sub(row[0], row[1]);
        if (factor)
          growth = f.mul(growth, row[2]);
        return arith::CmpFOp::create(f.builder, f.loc,
                                     arith::CmpFPredicate::OGT, growth,
                                     f.constant(slack));
      },
      /*origin=*/{}, f.builder.getI1Type());
  Value max = b.map({largest, state.rowMax, grows}, [&](ValueRange row) {
    return f.select(row[2], row[0], row[1]);
  });
  Value rescale = computeRescale(state.rowMax, max);
  Value probs = computeProbs(scores, max);
  addProbs(probs, rescale, max, state);
  return {probs, rescale, grows};
}

Value OnlineSoftmax::getReference(const SoftmaxState &state) const {
  return b.map(withFactor({state.rowMax}), [&](ValueRange row) {
    Value exponent = toExponent(row);
    return bias ? f.sub(exponent, f.constant(bias)) : exponent;
  });
}

Value OnlineSoftmax::getRowSum(const SoftmaxState &state) const {
  Value sum = b.reduce(Reduction::AddF, state.rowSum, /*init=*/Value(),
                       cast<FragmentType>(state.rowMax.getType()), scratch);
  return join ? join(Reduction::AddF, sum) : sum;
}
