//===- Copy.cpp - Expand kvcache.copy -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Builders/Heads.h"
#include "../Builders/ScaleRow.h"
#include "ExpandOps.h"

#include "kvcache/IR/QueryOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Heads of a thread whose loads are in flight together, without a hint.
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
  int64_t perThread =
      tokensAtOnce == 1 ? frame.getHeadsInFlight(heads, kHeadsOfCopy) : 1;
  int64_t headThreads =
      split.getHeadThreads(heads / perThread, frame.blockThreads);
  return {isBits, split, perThread, headThreads, tokensAtOnce};
}

/// The expansion of one op: a block of threads for each token, or for those
/// that share their scales in the target.
class Copier {
public:
  Copier(CopyOp op, const Frame &frame)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc),
        plan(makePlan(op, frame)),
        scales(frame, op.getTarget(), op.getTargetHead(), op.getNumHeads(),
               plan.headThreads * plan.split.lanes, plan.split),
        putsScales(!plan.isBits && scales.isNeeded()),
        copiesRows(plan.isBits && frame.isGPU &&
                   hasScaleRows(getType(op.getSource())) &&
                   hasScaleRows(getType(op.getTarget()))) {}

  void expand() {
    auto getExtent = [&](Extent extent) -> Value {
      return ExtentOp::create(builder, loc, builder.getIndexType(), extent,
                              op.getSource());
    };
    // Without an end, no sequence has more tokens in the cache than the
    // longest.
    Value tokens =
        op.getEnd() ? getExtent(Extent::Tokens)
                    : MaxContextLengthOp::create(builder, loc, op.getSource());
    frame.forTokens(
        getExtent(Extent::Batch), tokens, plan.tokensAtOnce,
        {plan.headThreads, plan.split.lanes},
        [&](Value b, Value t, ValueRange thread) { copyToken(b, t, thread); });
  }

private:
  static CacheTypeInterface getType(Value cache) {
    return cast<CacheTypeInterface>(cache.getType());
  }

  void copyToken(Value b, Value t, ValueRange thread) {
    if (putsScales)
      scales.allocate();
    frame.checkFirst(b, "sequence",
                     {{"begin", op.getBegin()}, {"end", op.getEnd()}});
    Value begin =
        op.getBegin() ? frame.loadNumber(op.getBegin(), b) : frame.index(0);
    Value end = op.getEnd()
                    ? frame.loadNumber(op.getEnd(), b)
                    : CacheLengthOp::create(builder, loc, op.getSource(), b)
                          .getResult();
    frame.runIf(isCopied(t, begin, end), [&] {
      Place place{b, t, Value()};
      if (copiesRows)
        return copyRow(place, thread);
      copyHeads(place, thread);
      if (!putsScales)
        return;
      gpu::BarrierOp::create(builder, loc);
      scales.store(place, frame.getThreadId(thread, plan.split.lanes));
    });
  }

  /// Copies the bits of a token with the row of its scales.
  void copyRow(const Place &place, ValueRange thread) {
    BitCopy copy{op.getSource(),
                 op.getTarget(),
                 place,
                 place,
                 frame.index(op.getSourceHead()),
                 frame.index(op.getTargetHead())};
    std::function<void()> storeScales =
        loadScaleRow(frame, copy, op.getNumHeads(),
                     frame.getThreadId(thread, plan.split.lanes),
                     plan.headThreads * plan.split.lanes);
    copyHeads(place, thread);
    storeScales();
  }

  /// Whether token `t`, with all tokens that share its scales in the target, is
  /// in `[begin, end)`.
  Value isCopied(Value t, Value begin, Value end) {
    auto target = cast<CacheTypeInterface>(op.getTarget().getType());
    int64_t tokens = target.getTokenGranularity();
    Value first = t, last = t;
    if (tokens > 1) {
      first = frame.sub(t, frame.rem(t, frame.index(tokens)));
      last = frame.add(first, frame.index(tokens - 1));
    }
    return arith::AndIOp::create(
        builder, loc, frame.below(last, end),
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, first,
                              begin));
  }

  /// Copies the heads of a thread, of one token or of those that share scales.
  void copyHeads(const Place &place, ValueRange thread) {
    int64_t shares = op.getNumHeads() / plan.headsPerThread;
    frame.forEach(thread[0], shares, plan.headThreads, [&](Value first) {
      SmallVector<std::function<void()>> stores;
      for (int64_t i = 0; i < plan.headsPerThread; ++i)
        stores.push_back(loadHead(
            place, frame.add(first, frame.index(i * shares)), thread[1]));
      for (const auto &store : stores)
        store();
    });
  }

  /// Loads a lane's share of a head, and returns a function that stores it.
  std::function<void()> loadHead(const Place &place, Value head, Value lane) {
    Value sourceHead = frame.add(head, frame.index(op.getSourceHead()));
    Value targetHead = frame.add(head, frame.index(op.getTargetHead()));
    if (plan.isBits)
      return loadBits(frame,
                      {op.getSource(), op.getTarget(), place, place, sourceHead,
                       targetHead},
                      lane, plan.split, /*withScales=*/!copiesRows);
    Value d = frame.mul(lane, frame.index(plan.split.unit));
    Value sourceScale = loadStaticScale(frame, op.getSourceScale(), sourceHead);
    Value targetScale = loadStaticScale(frame, op.getTargetScale(), targetHead);
    SmallVector<Value> rows;
    for (int64_t offset = 0; offset < plan.tokensAtOnce; ++offset) {
      Place from = place;
      if (offset)
        from.token = frame.add(place.token, frame.index(offset));
      rows.push_back(loadElements(frame, op.getSource(), from, sourceHead, d,
                                  plan.split.unit, builder.getF32Type(),
                                  sourceScale));
    }
    return [=] {
      if (plan.tokensAtOnce > 1)
        return storeGroup(frame, rows, op.getTarget(), place, targetHead, d,
                          targetScale);
      StoreOptions options;
      options.factor = targetScale;
      options.scales = putsScales ? &scales : nullptr;
      storeElements(frame, rows.front(), op.getTarget(), place, targetHead, d,
                    plan.split, options);
    };
  }

  CopyOp op;
  Frame frame;
  OpBuilder &builder;
  Location loc;
  CopyPlan plan;
  /// The scales of a token, which threads put together unless each stores its
  /// own.
  ScaleRow scales;
  bool putsScales;
  /// Whether threads copy the scales of a token as a row, and not each those of
  /// its heads.
  bool copiesRows;
};

} // namespace

void kvcache::expand(CopyOp op, const Frame &frame) {
  Copier(op, frame).expand();
}
