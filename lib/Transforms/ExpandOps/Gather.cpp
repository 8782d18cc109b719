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
  /// Heads of a thread, threads of a token along its heads, tokens of a block.
  int64_t headsPerThread, headThreads, tokens;
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

GatherPlan makePlan(SmallVector<Pair> pairs, const Frame &frame) {
  CacheTypeInterface type = getCacheType(pairs.front());
  int64_t size = type.getHeadSize();
  Split split =
      splitHead(size, size,
                frame.getFloatsAtOnce(size, {getOutputElement(pairs.front()),
                                             type.getElementType()}));
  int64_t perThread =
      frame.getHeadsInFlight(type.getNumHeads(), kHeadsInFlight);
  int64_t headThreads =
      split.getHeadThreads(type.getNumHeads() / perThread, frame.blockThreads);
  int64_t wanted = frame.blockThreads / (split.lanes * headThreads);
  int64_t tokens =
      frame.isGPU ? std::clamp<int64_t>(wanted, 1, kMostTokens) : 1;
  return {std::move(pairs), split, perThread, headThreads, tokens};
}

/// Keys and values together if their heads are equal, else one after the other.
SmallVector<GatherPlan> makePlans(GatherOp op, const Frame &frame) {
  Pair keys = {op.getKeyCache(), op.getKeyScale(), op.getKeys()};
  if (!op.getValues())
    return {makePlan({keys}, frame)};
  Pair values = {op.getValueCache(), op.getValueScale(), op.getValues()};
  if (haveEqualHeads(keys, values))
    return {makePlan({keys, values}, frame)};
  return {makePlan({keys}, frame), makePlan({values}, frame)};
}

/// Loads the heads of a thread, or zeros, and then stores them all.
void gatherHeads(const Frame &frame, ArrayRef<Pair> pairs,
                 const GatherPlan &plan, const Row &row, Value isInside,
                 ArrayRef<Value> heads, Value lane) {
  OpBuilder &builder = frame.builder;
  Value d = frame.mul(lane, frame.index(plan.split.unit));
  auto load = [&](OpBuilder &, Location) {
    SmallVector<Value> values;
    for (const Pair &pair : pairs)
      for (Value head : heads)
        values.push_back(
            loadElements(frame, pair.cache, {row.batch, row.token, Value()},
                         head, d, plan.split.unit, getOutputElement(pair),
                         loadStaticScale(frame, pair.scale, head)));
    scf::YieldOp::create(builder, frame.loc, values);
  };
  auto clear = [&](OpBuilder &, Location) {
    SmallVector<Value> values;
    for (const Pair &pair : pairs) {
      auto type = VectorType::get(plan.split.unit, getOutputElement(pair));
      Value zero = arith::ConstantOp::create(builder, frame.loc,
                                             builder.getZeroAttr(type));
      values.append(heads.size(), zero);
    }
    scf::YieldOp::create(builder, frame.loc, values);
  };
  auto branch = scf::IfOp::create(builder, frame.loc, row.isUsed, load, clear);
  runIfGiven(frame, isInside, [&] {
    unsigned next = 0;
    for (const Pair &pair : pairs)
      for (Value head : heads) {
        SmallVector<Value> indices(row.output);
        indices.push_back(head);
        storeDense(frame, branch.getResult(next++), pair.out, indices, d);
      }
  });
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
  int64_t shares =
      cast<CacheTypeInterface>(op.getKeyCache().getType()).getNumHeads() /
      plan.headsPerThread;
  frame.forEach(headThread, shares, plan.headThreads, [&](Value first) {
    SmallVector<Value> heads;
    for (int64_t i = 0; i < plan.headsPerThread; ++i)
      heads.push_back(frame.add(first, frame.index(i * shares)));
    if (frame.isGPU)
      return gatherHeads(frame, plan.pairs, plan, row, isInside, heads, lane);
    // Registers of a CPU hold one part of a head.
    for (const Pair &pair : plan.pairs)
      gatherHeads(frame, pair, plan, row, isInside, heads, lane);
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
    if (plan.tokens > 1) {
      isInside = frame.below(row, tokens);
      isUsed =
          arith::AndIOp::create(frame.builder, frame.loc, isUsed, isInside);
    }
    gatherRow(op, frame, plan, {b, token, isUsed, {b, row}}, isInside,
              thread[1], thread[2]);
  };
  frame.forTokens(batch, tokens, plan.tokens,
                  {plan.tokens, plan.headThreads, plan.split.lanes}, gather);
}

/// Outputs whose rows are those of all sequences, one after the other.
void expandRagged(GatherOp op, const Frame &frame, const GatherPlan &plan) {
  Value offsets = op.getOutputOffsets();
  Value total = frame.dim(op.getKeys(), 0);
  frame.forBlocks({total}, {plan.tokens}, [&](ValueRange block) {
    frame.forThreads({plan.tokens, plan.headThreads, plan.split.lanes},
                     [&](ValueRange thread) {
                       Value row = frame.add(block[0], thread[0]);
                       Value rows = frame.min(frame.countRows(offsets), total);
                       frame.runIf(frame.below(row, rows), [&] {
                         Value b = frame.findSequence(offsets, row);
                         auto [begin, end] = getRange(op, frame, b);
                         Value i = frame.sub(row, frame.loadNumber(offsets, b));
                         Value token = frame.add(begin, i);
                         Value isUsed = frame.below(token, end);
                         gatherRow(op, frame, plan, {b, token, isUsed, {row}},
                                   Value(), thread[1], thread[2]);
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
