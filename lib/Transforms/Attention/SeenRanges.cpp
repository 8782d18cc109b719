//===- SeenRanges.cpp - The ranges of tokens that rows see ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeenRanges.h"

#include "../PlanAttention/TileSizes.h"

#include "kvcache/IR/CheckOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// The sides of a range.
constexpr int64_t kBegin = 0, kEnd = 1;

Value SeenRanges::load(Value row, Value number, int64_t side) const {
  return frame.loadSigned(ranges, {row, number, frame.index(side)});
}

void SeenRanges::check(Value row) const {
  if (!frame.hasChecks || !hasGaps())
    return;
  Value count = frame.dim(ranges, 1), one = frame.index(1);
  auto checkOrder = [&](Value lhs, Value rhs, StringRef what) {
    // Differences, because numbers may be negative.
    CheckOp::create(frame.builder, frame.loc, frame.sub(rhs, lhs),
                    frame.index(int64_t(1) << 32), what);
  };
  frame.loop(frame.index(0), count, one, [&](Value number) {
    Value end = load(row, number, kEnd), next = frame.add(number, one);
    checkOrder(load(row, number, kBegin), end, "length of a range of 'ranges'");
    frame.runIf(frame.below(next, count), [&] {
      checkOrder(end, load(row, next, kBegin),
                 "distance of a range of 'ranges' from the one before");
    });
  });
}

TokenRange SeenRanges::getHull(Value row) const {
  Value zero = frame.index(0);
  Value last = frame.sub(frame.dim(ranges, 1), frame.index(1));
  Value isRow = frame.below(row, frame.dim(ranges, 0));
  auto loadIf = [&](Value number, int64_t side) {
    return frame.selectIf(
        isRow, [&] { return load(row, number, side); }, [&] { return zero; });
  };
  return {loadIf(zero, kBegin), loadIf(last, kEnd)};
}

AdmittedTokens SeenRanges::computeHulls(Value firstRow, Value count,
                                        Value lane) const {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value none = frame.i32(std::numeric_limits<int32_t>::max());
  Value zero = frame.i32(0);
  // The least begin and the largest end, and the largest begin and least end.
  std::array<bool, 4> areLargest = {false, true, true, false};
  auto combine = [&](int64_t number, Value lhs, Value rhs) {
    return areLargest[number] ? frame.max(lhs, rhs) : frame.min(lhs, rhs);
  };
  auto loop = scf::ForOp::create(
      builder, loc, lane ? lane : frame.index(0), count,
      frame.index(lane ? kWarp : 1), ValueRange{none, zero, zero, none},
      [&](OpBuilder &, Location, Value i, ValueRange carried) {
        TokenRange hull = getHull(frame.add(firstRow, i));
        Value from = frame.toI32(hull.from), to = frame.toI32(hull.to);
        // A row without tokens makes the range of all rows no larger.
        Value hasTokens = frame.less(from, to);
        auto ifTokens = [&](Value value, Value other) -> Value {
          return arith::SelectOp::create(builder, loc, hasTokens, value, other);
        };
        std::array<Value, 4> bounds = {ifTokens(from, none), ifTokens(to, zero),
                                       from, to};
        SmallVector<Value> next;
        for (auto [number, bound] : llvm::enumerate(bounds))
          next.push_back(combine(number, carried[number], bound));
        scf::YieldOp::create(builder, loc, next);
      });
  SmallVector<Value> bounds(loop.getResults());
  for (int64_t offset = 1; lane && offset < kWarp; offset *= 2)
    for (auto [number, bound] : llvm::enumerate(bounds)) {
      auto shuffle = gpu::ShuffleOp::create(
          builder, loc, bound, static_cast<int32_t>(offset),
          static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR);
      bound = combine(number, bound, shuffle.getShuffleResult());
    }
  auto widen = [&](Value value) -> Value {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                      value);
  };
  // No row has a token: an empty range at 0.
  return {{widen(frame.min(bounds[0], bounds[1])), widen(bounds[1])},
          {widen(bounds[2]), widen(bounds[3])}};
}

// The last range that begins before the end of the tokens has the largest end
// of such ranges.
AdmittedPairs SeenRanges::computePairs(Value row,
                                       const TokenRange &tokens) const {
  Value number =
      frame.findLast(frame.dim(ranges, 1), [&](Value candidate) -> Value {
        Value begin = load(row, candidate, kBegin);
        return frame.less(frame.sub(tokens.to, frame.index(1)), begin);
      });
  Value begin = load(row, number, kBegin), end = load(row, number, kEnd);
  auto both = [&](Value lhs, Value rhs) -> Value {
    return arith::AndIOp::create(frame.builder, frame.loc, lhs, rhs);
  };
  Value one = frame.index(1);
  return {both(frame.less(begin, tokens.to), frame.less(tokens.from, end)),
          both(frame.less(begin, frame.add(tokens.from, one)),
               frame.less(frame.sub(tokens.to, one), end))};
}

ValueRange SeenRanges::forGaps(ValueRange values, GapBody body) const {
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, frame.index(1), frame.dim(ranges, 1),
      frame.index(1), values,
      [&](OpBuilder &, Location, Value number, ValueRange carried) {
        scf::YieldOp::create(frame.builder, frame.loc, body(number, carried));
      });
  return loop.getResults();
}

TokenRange SeenRanges::getGap(Value row, Value number) const {
  return {load(row, frame.sub(number, frame.index(1)), kEnd),
          load(row, number, kBegin)};
}
