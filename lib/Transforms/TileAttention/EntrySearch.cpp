//===- EntrySearch.cpp - Search of the entry of a work item ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntrySearch.h"

#include "../PlanAttention/TileSizes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

Value kvcache::shuffle(const Frame &frame, Value value, Value lane) {
  return gpu::ShuffleOp::create(frame.builder, frame.loc, value, lane,
                                frame.i32(kWarp), gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

EntryGroup EntrySearch::find(Value item, Value base, Value before) const {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  auto loop = scf::WhileOp::create(
      builder, loc, SmallVector<Type>(5, builder.getI32Type()),
      ValueRange{base, before},
      [&](OpBuilder &, Location, ValueRange state) {
        EntryGroup group = count(state[0], state[1]);
        Value isAfterGroup =
            arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                  frame.sub(item, group.before), group.total);
        Value next = frame.add(group.base, frame.i32(kWarp));
        Value goesOn = arith::AndIOp::create(builder, loc, isAfterGroup,
                                             frame.below(next, entries));
        scf::ConditionOp::create(builder, loc, goesOn,
                                 ValueRange{group.base, group.before,
                                            group.total, group.inclusive,
                                            group.own});
      },
      [&](OpBuilder &, Location, ValueRange group) {
        scf::YieldOp::create(builder, loc,
                             ValueRange{frame.add(group[0], frame.i32(kWarp)),
                                        frame.add(group[1], group[2])});
      });
  return {loop.getResult(0), loop.getResult(1), loop.getResult(2),
          loop.getResult(3), loop.getResult(4)};
}

EntryGroup EntrySearch::count(Value base, Value before) const {
  Value entry = frame.add(base, lane), zero = frame.i32(0);
  Value own = frame.selectIf(
      frame.below(entry, entries),
      [&] { return frame.toI32(countItems(frame.fromI32(entry))); },
      [&] { return zero; });
  Value sum = own;
  for (int32_t offset = 1; offset < kWarp; offset *= 2) {
    Value other = gpu::ShuffleOp::create(frame.builder, frame.loc, sum, offset,
                                         kWarp, gpu::ShuffleMode::UP)
                      .getShuffleResult();
    Value isThere = frame.below(lane, frame.i32(offset));
    sum = frame.add(sum, arith::SelectOp::create(frame.builder, frame.loc,
                                                 isThere, zero, other));
  }
  return {base, before, shuffle(frame, sum, frame.i32(kWarp - 1)), sum, own};
}
