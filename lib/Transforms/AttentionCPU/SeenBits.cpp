//===- SeenBits.cpp - Bits of the tokens that rows see --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeenBits.h"

#include "../Attention/SeenRanges.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::haveSeenBits(AttentionOp op) {
  return op.getMask() || op.getRows() || hasGaps(op.getRanges());
}

Value SeenBits::computeWord(Value given, Value i, Value token) const {
  const Frame &frame = attention.frame;
  Value word = given;
  if (attention.op.getMask())
    word = frame.builder.createOrFold<arith::AndIOp>(frame.loc, word,
                                                     getMaskWord(i, token));
  return hasGaps(attention.op.getRanges()) ? clearGaps(i, token, word) : word;
}

// The bits of two words, from a bit on that may be negative.
Value SeenBits::getMaskWord(Value i, Value token) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value bit = attention.op.getWholeMask() ? token : frame.sub(token, rows.own);
  Value word =
      arith::FloorDivSIOp::create(builder, loc, bit, frame.index(kWordTokens));
  auto widen = [&](Value value) -> Value {
    return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value);
  };
  Value low = widen(loadMask(i, word));
  Value high = widen(loadMask(i, frame.add(word, frame.index(1))));
  Value width = arith::ConstantIntOp::create(builder, loc, kWordTokens, 64);
  Value pair = arith::OrIOp::create(
      builder, loc, low, arith::ShLIOp::create(builder, loc, high, width));
  Value shift =
      widen(frame.toI32(frame.sub(bit, frame.mul(word, kWordTokens))));
  pair = arith::ShRUIOp::create(builder, loc, pair, shift);
  return arith::TruncIOp::create(builder, loc, builder.getI32Type(), pair);
}

/// A word of the mask of a row. Without bits of all tokens, rows see those
/// before the first one.
Value SeenBits::loadMask(Value i, Value word) const {
  const Frame &frame = attention.frame;
  Value mask = attention.op.getMask();
  return frame.selectIf(
      frame.below(word, frame.dim(mask, 1)),
      [&]() -> Value {
        return memref::LoadOp::create(
            frame.builder, frame.loc, mask,
            ValueRange{frame.add(rows.first, i), word});
      },
      [&]() -> Value {
        if (attention.op.getWholeMask())
          return frame.i32(0);
        return arith::SelectOp::create(frame.builder, frame.loc,
                                       frame.less(word, frame.index(0)),
                                       frame.i32(-1), frame.i32(0));
      });
}

Value SeenBits::getGivenWord(Value ids, Value firstId) const {
  const Frame &frame = attention.frame;
  if (!ids)
    return frame.i32(-1);
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  auto loop = scf::ForOp::create(
      builder, loc, frame.index(0), frame.index(kWordTokens), frame.index(1),
      frame.i32(0), [&](OpBuilder &, Location, Value bit, ValueRange carried) {
        Value id =
            memref::LoadOp::create(builder, loc, ids, frame.add(firstId, bit));
        Value isGiven = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::sge, id, frame.i32(0));
        Value flag =
            arith::ExtUIOp::create(builder, loc, builder.getI32Type(), isGiven);
        flag = arith::ShLIOp::create(builder, loc, flag, frame.toI32(bit));
        Value next = arith::OrIOp::create(builder, loc, carried.front(), flag);
        scf::YieldOp::create(builder, loc, next);
      });
  return loop.getResult(0);
}

Value SeenBits::clearGaps(Value i, Value token, Value word) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Type wide = builder.getI64Type();
  Value one = arith::ConstantIntOp::create(builder, loc, 1, 64);
  // The bits of tokens before an end.
  auto getBitsBefore = [&](Value end) -> Value {
    Value count = frame.sub(end, token);
    count =
        frame.max(frame.min(count, frame.index(kWordTokens)), frame.index(0));
    count = arith::IndexCastOp::create(builder, loc, wide, count);
    Value bits = arith::ShLIOp::create(builder, loc, one, count);
    bits = arith::SubIOp::create(builder, loc, bits, one);
    return arith::TruncIOp::create(builder, loc, builder.getI32Type(), bits);
  };
  SeenRanges ranges(frame, attention.op);
  auto clear = [&](Value number, ValueRange carried) -> SmallVector<Value> {
    TokenRange gap = ranges.getGap(frame.add(rows.first, i), number);
    Value before = getBitsBefore(gap.from);
    Value after = arith::XOrIOp::create(builder, loc, getBitsBefore(gap.to),
                                        frame.i32(-1));
    Value kept = arith::OrIOp::create(builder, loc, before, after);
    return {arith::AndIOp::create(builder, loc, carried.front(), kept)};
  };
  return ranges.forGaps(word, clear).front();
}
