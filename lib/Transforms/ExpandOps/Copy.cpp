//===- Copy.cpp - Expand kvcache.copy -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"
#include "Heads.h"

#include "kvcache/IR/QueryOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Heads of a thread of a GPU whose loads are in flight together.
constexpr int64_t kHeadsOfCopy = 2;

/// How the heads of both caches are divided among threads, and the heads and
/// tokens that a thread copies at once.
struct CopyPlan {
  bool isBits;
  Split split;
  int64_t headsPerThread, headThreads;
  int64_t tokensAtOnce;
};

/// The split of a head whose channels have scales of their own.
Split splitChannels(const Frame &frame, int64_t headSize, int64_t tokens) {
  constexpr int64_t registers = 128, floatsAtOnce = 1024;
  int64_t values = frame.isGPU ? registers : floatsAtOnce;
  return splitHead(headSize, headSize, std::max<int64_t>(values / tokens, 2));
}

CopyPlan makePlan(CopyOp op, const Frame &frame) {
  auto source = cast<CacheTypeInterface>(op.getSource().getType());
  auto target = cast<CacheTypeInterface>(op.getTarget().getType());
  int64_t headSize = source.getHeadSize(),
          tokens = target.getTokenGranularity();
  bool isBits = haveOneFormat(source, target) && !op.getSourceScale() &&
                !op.getTargetScale();
  Split split = isBits ? splitForCopy(frame, source)
                : tokens != 1
                    ? splitChannels(frame, headSize, tokens)
                    : splitForStore(frame, target, headSize,
                                    frame.getFloatsAtOnce(
                                        headSize, {source.getElementType(),
                                                   target.getElementType()}));
  int64_t tokensAtOnce = isBits ? 1 : tokens, heads = op.getNumHeads();
  int64_t perThread = frame.isGPU && tokensAtOnce == 1
                          ? getDivisorUpTo(heads, kHeadsOfCopy)
                          : 1;
  return {isBits, split, perThread, split.getHeadThreads(heads / perThread),
          tokensAtOnce};
}

/// Whether token `t`, with all tokens that share its scales in the target, is
/// in `[begin, end)`.
Value isCopied(CopyOp op, const Frame &frame, Value t, Value begin, Value end) {
  auto target = cast<CacheTypeInterface>(op.getTarget().getType());
  int64_t tokens = target.getTokenGranularity();
  Value first = t, last = t;
  if (tokens > 1) {
    first = frame.sub(t, frame.rem(t, frame.index(tokens)));
    last = frame.add(first, frame.index(tokens - 1));
  }
  return arith::AndIOp::create(frame.builder, frame.loc, frame.below(last, end),
                               arith::CmpIOp::create(frame.builder, frame.loc,
                                                     arith::CmpIPredicate::uge,
                                                     first, begin));
}

/// Loads a lane's share of a head, and returns a function that stores it.
std::function<void()> loadHead(CopyOp op, const Frame &frame,
                               const CopyPlan &plan, const Place &place,
                               Value head, Value lane) {
  Value sourceHead = frame.add(head, frame.index(op.getSourceHead()));
  Value targetHead = frame.add(head, frame.index(op.getTargetHead()));
  if (plan.isBits)
    return loadBits(
        frame,
        {op.getSource(), op.getTarget(), place, place, sourceHead, targetHead},
        lane, plan.split);
  Value d = frame.mul(lane, frame.index(plan.split.unit));
  Value sourceScale = loadStaticScale(frame, op.getSourceScale(), sourceHead);
  Value targetScale = loadStaticScale(frame, op.getTargetScale(), targetHead);
  SmallVector<Value> rows;
  for (int64_t offset = 0; offset < plan.tokensAtOnce; ++offset) {
    Place from = place;
    if (offset)
      from.token = frame.add(place.token, frame.index(offset));
    rows.push_back(loadElements(frame, op.getSource(), from, sourceHead, d,
                                plan.split.unit, frame.builder.getF32Type(),
                                sourceScale));
  }
  Value target = op.getTarget();
  return [=, &frame] {
    if (plan.tokensAtOnce > 1)
      return storeGroup(frame, rows, target, place, targetHead, d, targetScale);
    StoreOptions options;
    options.factor = targetScale;
    storeElements(frame, rows.front(), target, place, targetHead, d, plan.split,
                  options);
  };
}

/// Copies the heads of a thread, of one token or of those that share scales.
void copyHeads(CopyOp op, const Frame &frame, const CopyPlan &plan,
               const Place &place, ValueRange thread) {
  int64_t shares = op.getNumHeads() / plan.headsPerThread;
  frame.forEach(thread[0], shares, plan.headThreads, [&](Value first) {
    SmallVector<std::function<void()>> stores;
    for (int64_t i = 0; i < plan.headsPerThread; ++i)
      stores.push_back(loadHead(op, frame, plan, place,
                                frame.add(first, frame.index(i * shares)),
                                thread[1]));
    for (const auto &store : stores)
      store();
  });
}

} // namespace

void kvcache::expand(CopyOp op, const Frame &frame) {
  OpBuilder &builder = frame.builder;
  CopyPlan plan = makePlan(op, frame);
  Value batch = ExtentOp::create(builder, frame.loc, builder.getIndexType(),
                                 Extent::Batch, op.getSource());
  // Without an end, no sequence has more tokens in the cache than the longest.
  Value tokens;
  if (op.getEnd())
    tokens = ExtentOp::create(builder, frame.loc, builder.getIndexType(),
                              Extent::Tokens, op.getSource());
  else
    tokens = MaxContextLengthOp::create(builder, frame.loc, op.getSource());
  auto copy = [&](Value b, Value t, ValueRange thread) {
    frame.checkFirst(b, "sequence",
                     {{"begin", op.getBegin()}, {"end", op.getEnd()}});
    Value begin =
        op.getBegin() ? frame.loadNumber(op.getBegin(), b) : frame.index(0);
    Value end = op.getEnd() ? frame.loadNumber(op.getEnd(), b)
                            : CacheLengthOp::create(builder, frame.loc,
                                                    op.getSource(), b)
                                  .getResult();
    frame.runIf(isCopied(op, frame, t, begin, end),
                [&] { copyHeads(op, frame, plan, {b, t, Value()}, thread); });
  };
  frame.forTokens(batch, tokens, plan.tokensAtOnce,
                  {plan.headThreads, plan.split.lanes}, copy);
}
