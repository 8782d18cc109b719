//===- Gather.cpp - Expand kvcache.gather ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Builders/Heads.h"
#include "ExpandOps.h"

#include "kvcache/IR/QueryOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <array>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A cache, its static scale, and where its tokens go.
struct Pair {
  Value cache, scale, out;
};

/// A token, and where it goes.
struct Row {
  Value batch, token;
  /// Whether the token is one that the op reads. Zeros go there otherwise.
  Value isUsed;
  SmallVector<Value> output;
};

/// Heads of a thread whose loads are in flight together, without a hint.
constexpr int64_t kHeadsInFlight = 4;
/// Tokens of a block at most: what chips have of threads along z.
constexpr int64_t kMostTokens = 64;

/// How one launch gathers keys, values, or both.
struct GatherPlan {
  SmallVector<Pair> pairs;
  Split split;
  int64_t headsPerThread;
  /// The threads of a block: its tokens, then those of a token along its heads
  /// and along a head. A CPU has one for a token.
  std::array<int64_t, 3> threads;
};

CacheTypeInterface getCacheType(const Pair &pair) {
  return cast<CacheTypeInterface>(pair.cache.getType());
}

Type getOutputElement(const Pair &pair) {
  return cast<MemRefType>(pair.out.getType()).getElementType();
}

/// Whether threads share the heads of both in one way.
bool haveEqualHeads(const Pair &a, const Pair &b) {
  CacheTypeInterface first = getCacheType(a), second = getCacheType(b);
  return first.getHeadSize() == second.getHeadSize() &&
         first.getElementType() == second.getElementType() &&
         getOutputElement(a) == getOutputElement(b);
}

/// The elements of a head that a thread loads at once. A CPU stores a register
/// before it loads the next one, unless it computes: it writes memory faster in
/// this order.
int64_t countElementsAtOnce(const Pair &pair, const Frame &frame) {
  CacheTypeInterface type = getCacheType(pair);
  Type element = getOutputElement(pair);
  if (!frame.isGPU && type.getElementType() == element && !pair.scale)
    return frame.target.vectorBits / element.getIntOrFloatBitWidth();
  return frame.getFloatsAtOnce(type.getHeadSize(),
                               {element, type.getElementType()});
}

GatherPlan makePlan(SmallVector<Pair> pairs, const Frame &frame) {
  CacheTypeInterface type = getCacheType(pairs.front());
  int64_t size = type.getHeadSize();
  Split split =
      splitHead(size, size, countElementsAtOnce(pairs.front(), frame));
  if (!frame.isGPU)
    return {std::move(pairs), split, /*headsPerThread=*/1, {1, 1, 1}};
  int64_t perThread =
      frame.getHeadsInFlight(type.getNumHeads(), kHeadsInFlight);
  int64_t headThreads =
      split.getHeadThreads(type.getNumHeads() / perThread, frame.blockThreads);
  int64_t wanted = frame.blockThreads / (split.lanes * headThreads);
  int64_t tokens = std::clamp<int64_t>(wanted, 1, kMostTokens);
  return {
      std::move(pairs), split, perThread, {tokens, headThreads, split.lanes}};
}

/// Keys and values together if their heads are equal and a GPU can have the
/// loads of both in flight, else one after the other: a CPU then reads and
/// writes memory in its order.
SmallVector<GatherPlan> makePlans(GatherOp op, const Frame &frame) {
  Pair keys = {op.getKeyCache(), op.getKeyScale(), op.getKeys()};
  if (!op.getValues())
    return {makePlan({keys}, frame)};
  Pair values = {op.getValueCache(), op.getValueScale(), op.getValues()};
  if (frame.isGPU && haveEqualHeads(keys, values))
    return {makePlan({keys, values}, frame)};
  return {makePlan({keys}, frame), makePlan({values}, frame)};
}

/// Loads elements of a head from `d` on.
Value loadUnit(const Frame &frame, const Pair &pair, const GatherPlan &plan,
               const Row &row, Value head, Value d) {
  return loadElements(frame, pair.cache, {row.batch, row.token, Value()}, head,
                      d, plan.split.unit, getOutputElement(pair),
                      loadStaticScale(frame, pair.scale, head));
}

/// The elements of a row that is not used.
Value createZeros(const Frame &frame, const Pair &pair,
                  const GatherPlan &plan) {
  auto type = VectorType::get(plan.split.unit, getOutputElement(pair));
  return arith::ConstantOp::create(frame.builder, frame.loc,
                                   frame.builder.getZeroAttr(type));
}

void storeUnit(const Frame &frame, const Pair &pair, const Row &row,
               Value values, Value head, Value d) {
  SmallVector<Value> indices(row.output);
  indices.push_back(head);
  storeDense(frame, values, pair.out, indices, d);
}

/// Loads the heads of a thread, or zeros, and then stores them all.
void gatherHeads(const Frame &frame, const GatherPlan &plan, const Row &row,
                 Value isInside, ArrayRef<Value> heads, Value lane) {
  OpBuilder &builder = frame.builder;
  Value d = frame.mul(lane, frame.index(plan.split.unit));
  auto load = [&](OpBuilder &, Location) {
    SmallVector<Value> values;
    for (const Pair &pair : plan.pairs)
      for (Value head : heads)
        values.push_back(loadUnit(frame, pair, plan, row, head, d));
    scf::YieldOp::create(builder, frame.loc, values);
  };
  auto clear = [&](OpBuilder &, Location) {
    SmallVector<Value> values;
    for (const Pair &pair : plan.pairs)
      values.append(heads.size(), createZeros(frame, pair, plan));
    scf::YieldOp::create(builder, frame.loc, values);
  };
  auto branch = scf::IfOp::create(builder, frame.loc, row.isUsed, load, clear);
  runIfGiven(frame, isInside, [&] {
    unsigned next = 0;
    for (const Pair &pair : plan.pairs)
      for (Value head : heads)
        storeUnit(frame, pair, row, branch.getResult(next++), head, d);
  });
}

/// Gathers a row of keys or values on a CPU. One branch has all of its heads,
/// so that its page is looked up once.
void gatherRowOnHost(const Frame &frame, const GatherPlan &plan,
                     const Row &row) {
  const Pair &pair = plan.pairs.front();
  auto forUnits = [&](function_ref<Value(Value head, Value d)> make) {
    frame.forEach(
        frame.index(0), getCacheType(pair).getNumHeads(), 1, [&](Value head) {
          frame.forEach(frame.index(0), plan.split.lanes, 1, [&](Value lane) {
            Value d = frame.mul(lane, frame.index(plan.split.unit));
            storeUnit(frame, pair, row, make(head, d), head, d);
          });
        });
    scf::YieldOp::create(frame.builder, frame.loc);
  };
  auto gather = [&](OpBuilder &, Location) {
    forUnits([&](Value head, Value d) {
      return loadUnit(frame, pair, plan, row, head, d);
    });
  };
  auto clear = [&](OpBuilder &, Location) {
    forUnits([&](Value, Value) { return createZeros(frame, pair, plan); });
  };
  scf::IfOp::create(frame.builder, frame.loc, row.isUsed, gather, clear);
}

/// The tokens of a sequence that the op reads: [begin, end).
std::pair<Value, Value> getRange(GatherOp op, const Frame &frame, Value b) {
  frame.checkFirst(b, "sequence",
                   {{"begin", op.getBegin()}, {"end", op.getEnd()}});
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

/// Gathers the heads of a thread for one row.
void gatherRow(GatherOp op, const Frame &frame, const GatherPlan &plan,
               const Row &row, Value isInside, Value headThread, Value lane) {
  if (!frame.isGPU)
    return gatherRowOnHost(frame, plan, row);
  int64_t shares =
      cast<CacheTypeInterface>(op.getKeyCache().getType()).getNumHeads() /
      plan.headsPerThread;
  frame.forEach(headThread, shares, plan.threads[1], [&](Value first) {
    SmallVector<Value> heads;
    for (int64_t i = 0; i < plan.headsPerThread; ++i)
      heads.push_back(frame.add(first, frame.index(i * shares)));
    gatherHeads(frame, plan, row, isInside, heads, lane);
  });
}

/// Outputs with rows for each sequence.
void expandDense(GatherOp op, const Frame &frame, const GatherPlan &plan) {
  Value batch = frame.dim(op.getKeys(), 0), tokens = frame.dim(op.getKeys(), 1);
  auto gather = [&](Value b, Value first, ValueRange thread) {
    Value row = frame.add(first, thread[0]);
    auto [begin, end] = getRange(op, frame, b);
    Value token = frame.add(begin, row);
    Value isUsed = frame.below(token, end);
    Value isInside;
    if (plan.threads[0] > 1) {
      isInside = frame.below(row, tokens);
      isUsed =
          arith::AndIOp::create(frame.builder, frame.loc, isUsed, isInside);
    }
    gatherRow(op, frame, plan, {b, token, isUsed, {b, row}}, isInside,
              thread[1], thread[2]);
  };
  frame.forTokens(batch, tokens, plan.threads[0], plan.threads, gather);
}

/// Outputs whose rows are those of all sequences, one after the other.
void expandRagged(GatherOp op, const Frame &frame, const GatherPlan &plan) {
  Value offsets = op.getOutputOffsets();
  Value total = frame.dim(op.getKeys(), 0);
  frame.forBlocks({total}, {plan.threads[0]}, [&](ValueRange block) {
    frame.forThreads(plan.threads, [&](ValueRange thread) {
      Value row = frame.add(block[0], thread[0]);
      Value rows = frame.min(frame.countRows(offsets), total);
      frame.runIf(frame.below(row, rows), [&] {
        Value b = frame.findSequence(offsets, row);
        auto [begin, end] = getRange(op, frame, b);
        Value i = frame.sub(row, frame.loadNumber(offsets, b));
        Value token = frame.add(begin, i);
        Value isUsed = frame.below(token, end);
        gatherRow(op, frame, plan, {b, token, isUsed, {row}}, Value(),
                  thread[1], thread[2]);
      });
    });
  });
}

} // namespace

void kvcache::expand(GatherOp op, const Frame &frame) {
  bool isRagged = static_cast<bool>(op.getOutputOffsets());
  frame.checkSize(isRagged ? "rows" : "sequences", {"keys", op.getKeys()},
                  {"values", op.getValues()});
  if (!isRagged)
    frame.checkSize("tokens", {"keys", op.getKeys(), 1},
                    {"values", op.getValues(), 1});
  frame.checkFirst(frame.index(0), "number",
                   {{"row_offsets", op.getRowOffsets()},
                    {"output_offsets", op.getOutputOffsets()}});
  for (const GatherPlan &plan : makePlans(op, frame)) {
    if (isRagged)
      expandRagged(op, frame, plan);
    else
      expandDense(op, frame, plan);
  }
}
