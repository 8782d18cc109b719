//===- NonFiniteValues.cpp - Values that are no numbers -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NonFiniteValues.h"

#include "PairBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::separateNonFinite(const Frame &frame, Value values,
                                Value nonFinite, Value count) {
  OpBuilder &builder = frame.builder;
  PairBuilder pairs(frame);
  int64_t size = cast<MemRefType>(values.getType()).getDimSize(1);
  auto separate = [&](Value row, Value d) {
    SmallVector<Value> indices = {row, d};
    Value all = memref::LoadOp::create(builder, frame.loc, values, indices);
    Value some = pairs.getNonFinite(all);
    memref::StoreOp::create(builder, frame.loc, some, nonFinite, indices);
    Value others = arith::XOrIOp::create(builder, frame.loc, all, some);
    memref::StoreOp::create(builder, frame.loc, others, values, indices);
  };
  frame.loop(frame.index(0), count, frame.index(1), [&](Value row) {
    frame.loop(frame.index(0), frame.index(size), frame.index(1),
               [&](Value d) { separate(row, d); });
  });
}

/// Adds a value to element `d` of the rows of a vector that see it, if it is
/// not 0.
static void addValue(const HostAttention &attention, const RowLanes &memory,
                     Value value, Value probs, Value vector, Value d) {
  const Frame &frame = attention.frame;
  const DeviceMath &f = attention.f;
  LaneBuilder lanes(frame);
  SmallVector<Value> indices = {vector, d, frame.index(0)};
  Value isNonFinite =
      arith::CmpFOp::create(frame.builder, frame.loc, arith::CmpFPredicate::UNE,
                            value, f.constant(0));
  frame.runIf(isNonFinite, [&] {
    Value acc = lanes.load(memory.acc, indices);
    Value next = f.fma(lanes.splat(value), probs, acc);
    next = f.select(isUnseen(frame, probs), acc, next);
    lanes.store(next, memory.acc, indices);
  });
}

void kvcache::addNonFinite(const HostAttention &attention,
                           const RowLanes &memory, const Panel &panel,
                           const TokenTile &tile, Value begin, Value end) {
  const Frame &frame = attention.frame;
  PairBuilder pairs(frame);
  LaneBuilder lanes(frame);
  Value zero = frame.index(0), one = frame.index(1);
  Value first = frame.div(panel.first, kLanes);
  Type words = VectorType::get(kLanes, frame.builder.getI32Type());
  auto addPair = [&](Value values, Value row, Value d) {
    frame.loop(zero, frame.div(panel.count, kLanes), one, [&](Value vector) {
      Value probs = lanes.load(memory.scores, {vector, row, zero});
      probs = arith::BitcastOp::create(frame.builder, frame.loc, words, probs);
      Value target = frame.add(first, vector);
      addValue(attention, memory, pairs.getLow(values), pairs.getLow(probs),
               target, d);
      addValue(attention, memory, pairs.getHigh(values), pairs.getHigh(probs),
               target, d);
    });
  };
  auto addRow = [&](Value row) {
    frame.loop(zero, frame.index(attention.sizes.valueSize), one, [&](Value d) {
      Value values = memref::LoadOp::create(frame.builder, frame.loc,
                                            tile.nonFinite, ValueRange{row, d});
      Value isAny =
          arith::CmpIOp::create(frame.builder, frame.loc,
                                arith::CmpIPredicate::ne, values, frame.i32(0));
      frame.runIf(isAny, [&] { addPair(values, row, d); });
    });
  };
  frame.loop(frame.div(begin, 2), frame.div(end, 2), one, addRow);
}
