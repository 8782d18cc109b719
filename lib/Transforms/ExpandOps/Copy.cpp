//===- Copy.cpp - Expand kvcache.copy -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"
#include "Heads.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// How the heads of both caches are divided among threads.
struct Plan {
  bool isBits;
  Split split;
  int64_t headsAtOnce;
};

Plan makePlan(CopyOp op, const Frame &frame) {
  auto source = cast<CacheTypeInterface>(op.getSource().getType());
  auto target = cast<CacheTypeInterface>(op.getTarget().getType());
  bool isBits = haveOneFormat(source, target);
  Split split =
      isBits ? splitForCopy(frame, source)
             : splitHead(source.getHeadSize(), source.getHeadSize(),
                         frame.isGPU ? 16 : 64,
                         target.isQuantized() ? target.getGranularity() : 0,
                         frame.isGPU);
  return {isBits, split, split.getHeadThreads(op.getNumHeads())};
}

void copyHead(CopyOp op, const Frame &frame, const Plan &plan,
              const Place &place, Value head, Value lane) {
  Value sourceHead = frame.add(head, frame.index(op.getSourceHead()));
  Value targetHead = frame.add(head, frame.index(op.getTargetHead()));
  if (plan.isBits) {
    loadBits(
        frame,
        {op.getSource(), op.getTarget(), place, place, sourceHead, targetHead},
        lane, plan.split)();
    return;
  }
  Value d = frame.mul(lane, frame.index(plan.split.unit));
  Value values = loadElements(frame, op.getSource(), place, sourceHead, d,
                              plan.split.unit, frame.builder.getF32Type());
  storeElements(frame, values, op.getTarget(), place, targetHead, d,
                plan.split);
}

} // namespace

void kvcache::expand(CopyOp op, const Frame &frame) {
  OpBuilder &builder = frame.builder;
  Plan plan = makePlan(op, frame);
  Value batch = ExtentOp::create(builder, frame.loc, builder.getIndexType(),
                                 Extent::Batch, op.getSource());
  // Without an end, no sequence has more tokens in the cache than the longest.
  Value tokens;
  if (op.getEnd())
    tokens = ExtentOp::create(builder, frame.loc, builder.getIndexType(),
                              Extent::Tokens, op.getSource());
  else
    tokens = MaxContextLengthOp::create(builder, frame.loc, op.getSource());
  frame.forBlocks({batch, tokens}, {1, 1}, [&](ValueRange block) {
    frame.forThreads(
        {plan.headsAtOnce, plan.split.lanes}, [&](ValueRange thread) {
          Value b = block[0], t = block[1];
          Value begin = op.getBegin() ? frame.loadNumber(op.getBegin(), b)
                                      : frame.index(0);
          Value end = op.getEnd() ? frame.loadNumber(op.getEnd(), b)
                                  : CacheLengthOp::create(builder, frame.loc,
                                                          op.getSource(), b)
                                        .getResult();
          Value isIn = arith::AndIOp::create(
              builder, frame.loc, frame.below(t, end),
              arith::CmpIOp::create(builder, frame.loc,
                                    arith::CmpIPredicate::uge, t, begin));
          frame.runIf(isIn, [&] {
            frame.forEach(
                thread[0], op.getNumHeads(), plan.headsAtOnce, [&](Value head) {
                  copyHead(op, frame, plan, {b, t, Value()}, head, thread[1]);
                });
          });
        });
  });
}
