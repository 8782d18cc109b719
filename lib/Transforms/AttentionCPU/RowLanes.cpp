//===- RowLanes.cpp - Rows of attention in lanes of vectors ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowLanes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

Value LaneBuilder::load(Value memory, ValueRange indices) const {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  return vector::LoadOp::create(frame.builder, frame.loc,
                                VectorType::get(kLanes, element), memory,
                                indices);
}

void LaneBuilder::store(Value vector, Value memory, ValueRange indices) const {
  vector::StoreOp::create(frame.builder, frame.loc, vector, memory, indices);
}

Value LaneBuilder::broadcast(Value memory, ValueRange indices) const {
  return splat(
      memref::LoadOp::create(frame.builder, frame.loc, memory, indices));
}

Value LaneBuilder::splat(Value scalar) const {
  return vector::BroadcastOp::create(frame.builder, frame.loc,
                                     VectorType::get(kLanes, scalar.getType()),
                                     scalar);
}

/// Tokens of scores or elements of values that the vectors of a panel are
/// multiplied by at once, so that all sums are in registers. A CPU with vectors
/// of 512 bits has 32 registers, others have 16.
static int64_t countSteps(const Frame &frame) {
  return frame.target.vectorBits > 128 ? kTokenSteps : kTokenSteps / 2;
}

namespace {

/// Vectors of rows: their first lanes in the block, and in their panel.
struct RowVectors {
  Value inBlock, inPanel;
  int64_t count;
};

/// Sums of products of `steps` numbers and of vectors of rows, in registers.
class PanelProduct {
public:
  PanelProduct(const Frame &frame, const RowVectors &rows, int64_t steps)
      : frame(frame), lanes(frame), rows(rows), steps(steps) {}

  /// Calls `body` with the number of a step and of a vector, and that of both.
  void forEach(function_ref<void(int64_t, int64_t, int64_t)> body) const {
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t v = 0; v < rows.count; ++v)
        body(step, v, step * rows.count + v);
  }

  /// The first lane of vector `v`, from the first one of all vectors on.
  Value getLane(Value first, int64_t v) const {
    return frame.add(first, frame.index(v * kLanes));
  }

  /// Adds products for each `k` in [begin, end): of the numbers that `load`
  /// returns for a step, and of vectors of row `k` of `factors`.
  struct Operands {
    Value begin, end;
    Value factors, firstLane;
    function_ref<Value(Value k, int64_t step)> load;
    bool skipsUnseen = false;
  };
  SmallVector<Value> run(ValueRange sums, const Operands &operands) const {
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, operands.begin, operands.end, frame.index(1),
        sums, [&](OpBuilder &, Location, Value k, ValueRange carried) {
          SmallVector<Value> factors, numbers, next(carried);
          for (int64_t v = 0; v < rows.count; ++v)
            factors.push_back(lanes.load(operands.factors,
                                         {k, getLane(operands.firstLane, v)}));
          for (int64_t step = 0; step < steps; ++step)
            numbers.push_back(operands.load(k, step));
          forEach([&](int64_t step, int64_t v, int64_t number) {
            next[number] = add(numbers[step], factors[v], carried[number],
                               operands.skipsUnseen);
          });
          scf::YieldOp::create(frame.builder, frame.loc, next);
        });
    return llvm::to_vector_of<Value>(loop.getResults());
  }

private:
  Value add(Value number, Value factor, Value sum, bool skipsUnseen) const {
    FloatBuilder f(frame.builder, frame.loc);
    Value next = f.fma(number, factor, sum);
    if (!skipsUnseen)
      return next;
    auto type = VectorType::get(kLanes, frame.builder.getI32Type());
    Value bits =
        arith::BitcastOp::create(frame.builder, frame.loc, type, factor);
    Value unseen = lanes.splat(frame.i32(kUnseenProb));
    Value isUnseen = arith::CmpIOp::create(
        frame.builder, frame.loc, arith::CmpIPredicate::eq, bits, unseen);
    return f.select(isUnseen, sum, next);
  }

  const Frame &frame;
  LaneBuilder lanes;
  const RowVectors &rows;
  int64_t steps;
};

} // namespace

/// Runs `body` with all vectors of a panel, or with each: where a panel is not
/// whole, or where registers have the sums of one vector only.
static void forVectors(const Frame &frame, const Panel &panel, bool isWhole,
                       function_ref<void(const RowVectors &)> body) {
  auto forEach = [&] {
    frame.loop(
        frame.index(0), panel.count, frame.index(kLanes),
        [&](Value lane) { body({frame.add(panel.first, lane), lane, 1}); });
  };
  if (!isWhole || frame.target.vectorBits < 512)
    return forEach();
  frame.runIf(
      frame.equal(panel.count, frame.index(kPanelRows)),
      [&] { body({panel.first, frame.index(0), kPanelVectors}); }, forEach);
}

void kvcache::multiplyKeys(const Frame &frame, const RowLanes &memory,
                           const Panel &panel, const TokenTile &tile,
                           Value begin, Value end) {
  FloatBuilder f(frame.builder, frame.loc);
  LaneBuilder lanes(frame);
  int64_t steps = countSteps(frame);
  int64_t size = cast<MemRefType>(tile.keys.getType()).getDimSize(1);
  forVectors(frame, panel, /*isWhole=*/true, [&](const RowVectors &rows) {
    PanelProduct product(frame, rows, steps);
    SmallVector<Value> zeros(steps * rows.count,
                             f.constant(f.vectorOf(kLanes), 0));
    frame.loop(begin, end, frame.index(steps), [&](Value token) {
      auto getToken = [&](int64_t step) {
        return frame.add(token, frame.index(step));
      };
      auto load = [&](Value d, int64_t step) {
        return lanes.broadcast(tile.keys, {getToken(step), d});
      };
      SmallVector<Value> scores =
          product.run(zeros, {frame.index(0), frame.index(size), memory.queries,
                              rows.inBlock, load});
      product.forEach([&](int64_t step, int64_t v, int64_t number) {
        lanes.store(scores[number], memory.scores,
                    {getToken(step), product.getLane(rows.inPanel, v)});
      });
    });
  });
}

void kvcache::addValues(const Frame &frame, const RowLanes &memory,
                        const Panel &panel, const TokenTile &tile, Value begin,
                        Value end, Value isOdd) {
  LaneBuilder lanes(frame);
  int64_t size = cast<MemRefType>(memory.acc.getType()).getDimSize(0);
  int64_t steps = std::gcd(size, countSteps(frame));
  auto add = [&](const RowVectors &rows, bool skipsUnseen) {
    PanelProduct product(frame, rows, steps);
    auto addElements = [&](Value d) {
      auto getIndices = [&](int64_t step, int64_t v) -> SmallVector<Value> {
        return {frame.add(d, frame.index(step)),
                product.getLane(rows.inBlock, v)};
      };
      auto load = [&](Value token, int64_t step) {
        return lanes.broadcast(tile.values,
                               {token, frame.add(d, frame.index(step))});
      };
      SmallVector<Value> sums;
      product.forEach([&](int64_t step, int64_t v, int64_t) {
        sums.push_back(lanes.load(memory.acc, getIndices(step, v)));
      });
      sums = product.run(
          sums, {begin, end, memory.scores, rows.inPanel, load, skipsUnseen});
      product.forEach([&](int64_t step, int64_t v, int64_t number) {
        lanes.store(sums[number], memory.acc, getIndices(step, v));
      });
    };
    frame.loop(frame.index(0), frame.index(size), frame.index(steps),
               addElements);
  };
  auto addAll = [&](bool skipsUnseen) {
    forVectors(frame, panel, /*isWhole=*/!skipsUnseen,
               [&](const RowVectors &rows) { add(rows, skipsUnseen); });
  };
  // 0 times such a value is no 0.
  frame.runIf(isOdd, [&] { addAll(true); }, [&] { addAll(false); });
}

/// Four rounds of a perfect shuffle: each interleaves the vectors of halves.
static SmallVector<Value> transposeSquare(const Frame &frame,
                                          ArrayRef<Value> vectors) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    int64_t source = lane / 2 + lane % 2 * kLanes;
    low.push_back(source);
    high.push_back(source + kLanes / 2);
  }
  SmallVector<Value> all(vectors);
  for (int64_t width = 1; width < kLanes; width *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < kLanes / 2; ++i)
      for (ArrayRef<int64_t> half : {low, high})
        next.push_back(vector::ShuffleOp::create(
            frame.builder, frame.loc, all[i], all[i + kLanes / 2], half));
    all = std::move(next);
  }
  return all;
}

SmallVector<Value> kvcache::transpose(const Frame &frame,
                                      ArrayRef<Value> vectors) {
  int64_t count = vectors.size();
  int64_t size = cast<VectorType>(vectors.front().getType()).getNumElements();
  if (count == kLanes && size == kLanes)
    return transposeSquare(frame, vectors);
  FloatBuilder f(frame.builder, frame.loc);
  SmallVector<Value> results;
  for (int64_t lane = 0; lane < size; ++lane) {
    SmallVector<Value> elements;
    for (Value vector : vectors)
      elements.push_back(
          vector::ExtractOp::create(frame.builder, frame.loc, vector, lane));
    results.push_back(vector::FromElementsOp::create(
        frame.builder, frame.loc, f.vectorOf(count), elements));
  }
  return results;
}
