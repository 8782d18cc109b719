//===- ScoreKeys.cpp - Scores as numbers that sort as they do -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreKeys.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

Value ScoreKeys::load(Value candidate) const {
  // Loads without a branch are in flight together.
  SmallVector<Value> place(row);
  place.push_back(
      frame.fromI32(frame.min(candidate, frame.sub(end, frame.i32(1)))));
  Value score = memref::LoadOp::create(frame.builder, frame.loc, scores, place);
  Value key = getKey(arith::BitcastOp::create(
      frame.builder, frame.loc, frame.builder.getI32Type(), score));
  if (first || last)
    key = select(isForced(candidate), frame.i32(-1), key);
  return select(frame.below(candidate, end), key, frame.i32(0));
}

Value ScoreKeys::select(Value condition, Value then, Value otherwise) const {
  return arith::SelectOp::create(frame.builder, frame.loc, condition, then,
                                 otherwise);
}

// Integers, so that no mode of the processor flushes denormals.
Value ScoreKeys::getKey(Value bits) const {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  constexpr int64_t kSign = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMagnitude = std::numeric_limits<int32_t>::max();
  constexpr int64_t kInfinity = 0x7f800000;
  Value magnitude =
      arith::AndIOp::create(builder, loc, bits, frame.i32(kMagnitude));
  Value isNegative = frame.less(bits, frame.i32(0));
  // Negative numbers sort by all of their bits in the opposite order.
  Value flipped = select(isNegative, frame.i32(-1), frame.i32(kSign));
  Value key = arith::XOrIOp::create(builder, loc, bits, flipped);
  key = select(frame.equal(magnitude, frame.i32(0)), frame.i32(kSign), key);
  return select(frame.less(frame.i32(kInfinity), magnitude), frame.i32(1), key);
}

Value ScoreKeys::isForced(Value candidate) const {
  Value isFirst = frame.below(candidate, frame.i32(first));
  Value isLast =
      frame.less(frame.sub(candidates, frame.i32(1 + last)), candidate);
  return arith::OrIOp::create(frame.builder, frame.loc, isFirst, isLast);
}
