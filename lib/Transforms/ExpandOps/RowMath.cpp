//===- RowMath.cpp - Norm and rope of a head ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowMath.h"
#include "Heads.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

HeadMath::HeadMath(const Frame &frame, LoadHead load, const Norm &norm,
                   const Rope &rope, int64_t headSize, const Split &split,
                   Value lane)
    : frame(frame), builder(frame.builder), loc(frame.loc), f(builder, loc),
      load(load), norm(norm), rope(rope), headSize(headSize), split(split) {
  if (norm.weights)
    factor = computeFactor(headSize, lane);
}

Value HeadMath::selectRange(Value d, int64_t begin, int64_t size,
                            int64_t headSize, function_ref<Value(Value)> inside,
                            Value otherwise) const {
  Value offset = frame.sub(d, frame.index(begin));
  if (size == headSize)
    return inside(offset);
  return frame.selectIf(
      frame.below(offset, frame.index(size)), [&] { return inside(offset); },
      [&] { return otherwise; });
}

//===----------------------------------------------------------------------===//
// Norm
//===----------------------------------------------------------------------===//

Value HeadMath::addSquares(Value d) const {
  return selectRange(
      d, 0, norm.size, headSize,
      [&](Value) -> Value {
        Value values =
            convertLanes(frame, load(d, split.piece), builder.getF32Type());
        Value squares = f.mul(values, values);
        return vector::ReductionOp::create(builder, loc,
                                           vector::CombiningKind::ADD, squares);
      },
      f.constant(0));
}

Value HeadMath::computeFactor(int64_t headSize, Value lane) const {
  Value sum;
  bool isShared = frame.isGPU && split.unit == split.piece &&
                  llvm::isPowerOf2_64(split.lanes) && split.lanes <= 32;
  if (isShared) {
    sum = addSquares(frame.mul(lane, frame.index(split.unit)));
    if (split.lanes > 1)
      sum = gpu::SubgroupReduceOp::create(
          builder, loc, sum, gpu::AllReduceOperation::ADD, /*uniform=*/false,
          /*cluster_size=*/split.lanes, /*cluster_stride=*/1);
  } else {
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), frame.index(norm.size),
        frame.index(split.piece), ValueRange{f.constant(0)},
        [&](OpBuilder &, Location, Value d, ValueRange carried) {
          Value next = f.add(carried[0], addSquares(d));
          scf::YieldOp::create(builder, loc, next);
        });
    sum = loop.getResult(0);
  }
  Value size = f.constant(static_cast<float>(norm.size));
  Value mean = f.div(sum, size);
  Value shifted = f.add(mean, f.constant(norm.epsilon));
  Value root = math::SqrtOp::create(builder, loc, shifted);
  return f.div(f.constant(1), root);
}

Value HeadMath::loadNormed(Value d) const {
  Type f32 = builder.getF32Type();
  Value values = convertLanes(frame, load(d, split.piece), f32);
  if (!norm.weights)
    return values;
  return selectRange(
      d, 0, norm.size, headSize,
      [&](Value) -> Value {
        Value weights = convertLanes(
            frame, loadDense(frame, norm.weights, {}, d, split.piece), f32);
        Value factors = f.broadcast(factor, values);
        Value scaled = f.mul(values, factors);
        return f.mul(scaled, weights);
      },
      values);
}

//===----------------------------------------------------------------------===//
// Rope
//===----------------------------------------------------------------------===//

Value HeadMath::loadTable(Value column, int64_t count) const {
  return loadDense(frame, rope.table, {rope.position}, column, count);
}

Value HeadMath::rotateHalves(Value d, Value normed) const {
  int64_t half = rope.size / 2;
  Value halfSize = frame.index(half);
  Value offset = frame.sub(d, frame.index(rope.begin));
  Value isFirst = frame.below(offset, halfSize);
  auto select = [&](Value then, Value otherwise) -> Value {
    return f.select(isFirst, then, otherwise);
  };
  Value partner =
      loadNormed(select(frame.add(d, halfSize), frame.sub(d, halfSize)));
  Value column = select(offset, frame.sub(offset, halfSize));
  Value cosines = loadTable(column, split.piece);
  Value sines = loadTable(frame.add(column, halfSize), split.piece);
  Value sign = select(f.constant(-1), f.constant(1));
  Value signs = f.broadcast(sign, sines);
  Value turned = f.mul(partner, f.mul(sines, signs));
  return f.fma(normed, cosines, turned);
}

Value HeadMath::rotatePairs(Value d, Value normed) const {
  int64_t count = split.piece / 2;
  SmallVector<int64_t> even, odd, both;
  for (int64_t i = 0; i < count; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
    both.append({i, count + i});
  }
  auto pick = [&](ArrayRef<int64_t> lanes) -> Value {
    return vector::ShuffleOp::create(builder, loc, normed, normed, lanes);
  };
  Value first = pick(even), second = pick(odd);
  Value column =
      frame.div(frame.sub(d, frame.index(rope.begin)), frame.index(2));
  Value cosines = loadTable(column, count);
  Value sines = loadTable(frame.add(column, frame.index(rope.size / 2)), count);
  Value down = f.negate(f.mul(second, sines));
  Value up = f.mul(first, sines);
  Value firsts = f.fma(first, cosines, down);
  Value seconds = f.fma(second, cosines, up);
  return vector::ShuffleOp::create(builder, loc, firsts, seconds, both);
}

Value HeadMath::compute(Value d) const {
  if (!norm.weights && !rope.table)
    return load(d, split.piece);
  Value normed = loadNormed(d);
  if (!rope.table)
    return normed;
  return selectRange(
      d, rope.begin, rope.size, headSize,
      [&](Value) {
        return rope.interleaved ? rotatePairs(d, normed)
                                : rotateHalves(d, normed);
      },
      normed);
}
