//===- PersistentScheduler.cpp - Work items of a persistent kernel --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PersistentScheduler.h"

#include "../Builders/WarpVote.h"
#include "../PlanAttention/TileSizes.h"
#include "EntrySearch.h"

#include "kvcache/IR/FragmentOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

PersistentScheduler::PersistentScheduler(const Frame &frame,
                                         const KeySplits &splits, Value slots,
                                         int64_t blocks, int64_t shares,
                                         Value thread)
    : frame(frame), splits(splits), slots(frame.toI32(slots)), blocks(blocks),
      shares(shares), thread(thread) {}

/// Returns an opaque copy of the thread's number.
static Value copyThread(const Frame &frame) {
  return OpaqueThreadOp::create(frame.builder, frame.loc,
                                frame.builder.getIndexType());
}

// Compilers do not move it out of loops, and ptxas has the result in a uniform
// register.
Value kvcache::unifyLanes(const Frame &frame, Value number) {
  return NVVM::ReduxOp::create(frame.builder, frame.loc, number.getType(),
                               number, NVVM::ReduxKind::UMAX, frame.i32(-1));
}

static Workspace getWorkspace(const Frame &frame, const KeySplits &splits,
                              Value slots) {
  return splits.getWorkspace(frame.fromI32(slots));
}

void PersistentScheduler::run(
    Value given, function_ref<Value(Value)> countItems,
    function_ref<void(const RunningItem &)> body) const {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value entries = frame.toI32(given);
  Type i32 = builder.getI32Type();
  SchedulerState state(frame);
  Value zero = frame.i32(0);
  frame.runIf(frame.equal(thread, frame.index(0)), [&] {
    Value taken = getWorkspace(frame, splits, slots).takeItem();
    state.store(SchedulerState::Next, {taken, zero, zero, zero});
    state.store(SchedulerState::Slots, {slots, zero, zero, zero});
  });
  auto findNext = [&](OpBuilder &, Location, ValueRange) {
    // The next item is stored, and the one before has ended.
    gpu::BarrierOp::create(builder, loc);
    Value lane = frame.rem(frame.toI32(copyThread(frame)), kWarp);
    SmallVector<Value> next = state.load(SchedulerState::Next);
    Value item = next[0], wholeItem = frame.div(item, shares);
    EntryGroup group = EntrySearch(frame, lane, entries, countItems)
                           .find(wholeItem, next[1], next[2]);
    // The lane whose entry has the item, if there is one.
    Value number = frame.sub(frame.sub(wholeItem, group.before),
                             frame.sub(group.inclusive, group.own));
    Value having = ballot(frame, frame.below(number, group.own));
    Value first = LLVM::CountTrailingZerosOp::create(builder, loc, i32, having,
                                                     /*is_zero_poison=*/false);
    Value entry = frame.add(group.base, first);
    scf::ConditionOp::create(
        builder, loc, frame.below(zero, having),
        ValueRange{item, group.base, group.before, group.total, entry,
                   shuffle(frame, number, first), next[3]});
  };
  auto runItem = [&](OpBuilder &, Location, ValueRange found) {
    Value itemThread = copyThread(frame);
    Value itemSlots = unifyLanes(frame, state.load(SchedulerState::Slots)[0]);
    Value entry = unifyLanes(frame, found[4]),
          number = unifyLanes(frame, found[5]);
    Value share = unifyLanes(frame, frame.rem(found[0], shares));
    frame.runIf(frame.equal(itemThread, frame.index(0)), [&] {
      state.store(SchedulerState::Running, {entry, number, share, zero});
    });
    ScheduledItem item{frame.fromI32(entry),     frame.fromI32(number),
                       frame.fromI32(share),     itemThread,
                       frame.fromI32(itemSlots), unifyLanes(frame, found[6])};
    body(RunningItem(frame, splits, state, item, found[1], found[2]));
    scf::YieldOp::create(builder, loc);
  };
  auto loop = scf::WhileOp::create(builder, loc, SmallVector<Type>(7, i32),
                                   ValueRange(), findNext, runItem);
  // Each block has taken one number that is no item's. The last one clears.
  Value item = loop.getResult(0);
  Value items =
      frame.mul(frame.add(loop.getResult(2), loop.getResult(3)), shares);
  Value isLast = frame.equal(frame.add(item, frame.i32(1)),
                             frame.add(items, frame.i32(blocks)));
  frame.runIf(arith::AndIOp::create(
                  builder, loc, frame.equal(thread, frame.index(0)), isLast),
              [&] {
                Value stored = state.load(SchedulerState::Slots)[0];
                getWorkspace(frame, splits, stored).clearItems();
              });
}

Value RunningItem::isFirstThread() const {
  return frame.equal(item.thread, frame.index(0));
}

Value RunningItem::take() const {
  return frame.selectIf(
      isFirstThread(),
      [&] { return splits.getWorkspace(item.slots).takeItem(); },
      [&] { return frame.i32(0); });
}

void RunningItem::store(Value taken, Value carried) const {
  frame.runIf(isFirstThread(), [&] {
    state.store(SchedulerState::Next, {taken, base, before, carried});
  });
}

ScheduledItem RunningItem::reload() const {
  SmallVector<Value> numbers = state.load(SchedulerState::Running);
  auto get = [&](Value number) { return frame.fromI32(unify(number)); };
  return {get(numbers[0]),
          get(numbers[1]),
          get(numbers[2]),
          item.thread,
          get(state.load(SchedulerState::Slots)[0]),
          Value()};
}

Value RunningItem::unify(Value number) const {
  return unifyLanes(frame, number);
}
