//===- Gather.cpp - Expand kvcache.gather ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"
#include "Heads.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A cache and where its tokens go.
struct Pair {
  Value cache, out;
};

/// Heads of a thread whose loads are in flight together.
constexpr int64_t kHeadsInFlight = 4;

struct Plan {
  Split split;
  /// Heads of a thread, threads of a token along its heads, tokens of a block.
  int64_t headsPerThread, headThreads, tokens;
};

Plan makePlan(GatherOp op, const Frame &frame) {
  auto type = cast<CacheTypeInterface>(op.getKeyCache().getType());
  auto out = cast<MemRefType>(op.getKeys().getType());
  int64_t bits = std::min<int64_t>(out.getElementTypeBitWidth(), 16);
  int64_t size = type.getHeadSize();
  Split split = splitHead(size, size, frame.isGPU ? 128 / bits : 64,
                          /*granularity=*/0, frame.isGPU);
  int64_t perThread = getDivisorUpTo(type.getNumHeads(), kHeadsInFlight);
  int64_t headThreads = split.getHeadThreads(type.getNumHeads() / perThread);
  int64_t tokens =
      frame.isGPU ? std::max<int64_t>(kThreads / (split.lanes * headThreads), 1)
                  : 1;
  return {split, perThread, headThreads, tokens};
}

/// Loads the heads of a thread, or zeros, and then stores them all.
void gatherHeads(const Frame &frame, ArrayRef<Pair> pairs, const Plan &plan,
                 Value batch, Value token, Value isUsed, Value row,
                 Value isInside, ArrayRef<Value> heads, Value lane) {
  OpBuilder &builder = frame.builder;
  Value d = frame.mul(lane, frame.index(plan.split.unit));
  auto laneOf = [](const Pair &pair) {
    return cast<MemRefType>(pair.out.getType()).getElementType();
  };
  auto load = [&](OpBuilder &, Location) {
    SmallVector<Value> values;
    for (const Pair &pair : pairs)
      for (Value head : heads)
        values.push_back(loadElements(frame, pair.cache,
                                      {batch, token, Value()}, head, d,
                                      plan.split.unit, laneOf(pair)));
    scf::YieldOp::create(builder, frame.loc, values);
  };
  auto clear = [&](OpBuilder &, Location) {
    SmallVector<Value> values;
    for (const Pair &pair : pairs) {
      auto type = VectorType::get(plan.split.unit, laneOf(pair));
      Value zero = arith::ConstantOp::create(builder, frame.loc,
                                             builder.getZeroAttr(type));
      values.append(heads.size(), zero);
    }
    scf::YieldOp::create(builder, frame.loc, values);
  };
  auto branch = scf::IfOp::create(builder, frame.loc, isUsed, load, clear);
  runIfGiven(frame, isInside, [&] {
    unsigned next = 0;
    for (const Pair &pair : pairs)
      for (Value head : heads)
        storeDense(frame, branch.getResult(next++), pair.out,
                   {batch, row, head}, d);
  });
}

/// The tokens of a sequence that the op reads: [begin, end).
std::pair<Value, Value> getRange(GatherOp op, const Frame &frame, Value b) {
  Value begin =
      op.getBegin() ? frame.loadNumber(op.getBegin(), b) : frame.index(0);
  if (op.getEnd())
    return {begin, frame.loadNumber(op.getEnd(), b)};
  Value end =
      CacheLengthOp::create(frame.builder, frame.loc, op.getKeyCache(), b);
  if (Value offsets = op.getRowOffsets()) {
    Value next = frame.loadNumber(offsets, frame.add(b, frame.index(1)));
    end = frame.add(end, frame.sub(next, frame.loadNumber(offsets, b)));
  }
  return {begin, end};
}

} // namespace

void kvcache::expand(GatherOp op, const Frame &frame) {
  Plan plan = makePlan(op, frame);
  SmallVector<Pair> pairs = {{op.getKeyCache(), op.getKeys()}};
  if (op.getValues())
    pairs.push_back({op.getValueCache(), op.getValues()});
  int64_t shares =
      cast<CacheTypeInterface>(op.getKeyCache().getType()).getNumHeads() /
      plan.headsPerThread;
  Value batch = frame.dim(op.getKeys(), 0), tokens = frame.dim(op.getKeys(), 1);
  frame.forBlocks({batch, tokens}, {1, plan.tokens}, [&](ValueRange block) {
    frame.forThreads(
        {plan.tokens, plan.headThreads, plan.split.lanes},
        [&](ValueRange thread) {
          Value b = block[0], row = frame.add(block[1], thread[0]);
          auto [begin, end] = getRange(op, frame, b);
          Value token = frame.add(begin, row);
          Value isUsed = frame.below(token, end);
          Value isInside;
          if (plan.tokens > 1) {
            isInside = frame.below(row, tokens);
            isUsed = arith::AndIOp::create(frame.builder, frame.loc, isUsed,
                                           isInside);
          }
          frame.forEach(thread[1], shares, plan.headThreads, [&](Value first) {
            SmallVector<Value> heads;
            for (int64_t i = 0; i < plan.headsPerThread; ++i)
              heads.push_back(frame.add(first, frame.index(i * shares)));
            gatherHeads(frame, pairs, plan, b, token, isUsed, row, isInside,
                        heads, thread[2]);
          });
        });
  });
}
