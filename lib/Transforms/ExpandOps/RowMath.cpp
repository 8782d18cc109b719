//===- RowMath.cpp - Norm and rope of a head ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowMath.h"
#include "../Builders/Heads.h"

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

/// Where the axis changes: the first pair of each run, and its axis. Empty if
/// an access of `count` pairs has several, or if there are many runs.
static SmallVector<std::pair<int64_t, int64_t>> findRuns(ArrayRef<int64_t> axes,
                                                         int64_t count) {
  constexpr size_t kMostRuns = 4;
  SmallVector<std::pair<int64_t, int64_t>> runs;
  for (auto [pair, axis] : llvm::enumerate(axes)) {
    if (!runs.empty() && runs.back().second == axis)
      continue;
    if (pair % count || runs.size() == kMostRuns)
      return {};
    runs.push_back({static_cast<int64_t>(pair), axis});
  }
  return runs;
}

Value HeadMath::loadCosines(Value pair, int64_t count) const {
  return loadTable(pair, 0, count);
}

Value HeadMath::loadSines(Value pair, int64_t count) const {
  return loadTable(pair, rope.size / 2, count);
}

Value HeadMath::loadTable(Value pair, int64_t first, int64_t count) const {
  Value column = first ? frame.add(pair, frame.index(first)) : pair;
  auto load = [&](Value position) {
    return loadDense(frame, rope.table, {position}, column, count);
  };
  if (rope.axes.empty())
    return load(rope.positions.front());
  auto runs = findRuns(rope.axes, count);
  if (!runs.empty())
    return load(selectPosition(pair, runs));
  Value values;
  for (auto [axis, position] : llvm::enumerate(rope.positions)) {
    if (!llvm::is_contained(rope.axes, axis))
      continue;
    Value loaded = load(position);
    values = values ? arith::SelectOp::create(builder, loc,
                                              isOnAxis(pair, axis, count),
                                              loaded, values)
                    : loaded;
  }
  return values;
}

Value HeadMath::selectPosition(
    Value pair, ArrayRef<std::pair<int64_t, int64_t>> runs) const {
  Value position = rope.positions[runs.front().second];
  for (auto [begin, axis] : runs.drop_front())
    position = arith::SelectOp::create(builder, loc,
                                       frame.below(pair, frame.index(begin)),
                                       position, rope.positions[axis]);
  return position;
}

Value HeadMath::isOnAxis(Value pair, int64_t axis, int64_t count) const {
  constexpr int64_t kBits = 64;
  Type word = builder.getIntegerType(kBits);
  int64_t pairs = rope.axes.size();
  Value bits;
  for (int64_t begin = 0; begin < pairs; begin += kBits) {
    uint64_t mask = 0;
    for (auto [bit, its] : llvm::enumerate(
             rope.axes.slice(begin, std::min<int64_t>(kBits, pairs - begin))))
      mask |= static_cast<uint64_t>(its == axis) << bit;
    Value constant = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(word, APInt(kBits, mask)));
    bits = bits ? arith::SelectOp::create(builder, loc,
                                          frame.below(pair, frame.index(begin)),
                                          bits, constant)
                : constant;
  }
  Value offset = arith::IndexCastOp::create(
      builder, loc, word, frame.rem(pair, frame.index(kBits)));
  bits = arith::ShRUIOp::create(builder, loc, bits, offset);
  auto lanes = VectorType::get(count, word);
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(count));
  Value shifts = arith::ConstantOp::create(
      builder, loc, DenseIntElementsAttr::get(lanes, numbers));
  Value shifted = arith::ShRUIOp::create(
      builder, loc, vector::BroadcastOp::create(builder, loc, lanes, bits),
      shifts);
  return arith::TruncIOp::create(
      builder, loc, VectorType::get(count, builder.getI1Type()), shifted);
}

Value HeadMath::rotateByPartner(Value d, Value normed) const {
  Value distance = frame.index(rope.interleaved ? 1 : rope.size / 2);
  Value offset = frame.sub(d, frame.index(rope.begin));
  Value isFirst =
      frame.below(rope.interleaved ? frame.rem(offset, 2) : offset, distance);
  auto select = [&](Value then, Value otherwise) -> Value {
    return f.select(isFirst, then, otherwise);
  };
  Value partner =
      loadNormed(select(frame.add(d, distance), frame.sub(d, distance)));
  Value pair = rope.interleaved ? frame.div(offset, 2)
                                : select(offset, frame.sub(offset, distance));
  Value cosines = loadCosines(pair, split.piece);
  Value sines = loadSines(pair, split.piece);
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
  Value pair = frame.div(frame.sub(d, frame.index(rope.begin)), frame.index(2));
  Value cosines = loadCosines(pair, count);
  Value sines = loadSines(pair, count);
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
        return rope.interleaved && split.piece > 1 ? rotatePairs(d, normed)
                                                   : rotateByPartner(d, normed);
      },
      normed);
}
