//===- PersistentScheduler.cpp - Work items of a persistent kernel --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PersistentScheduler.h"

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
                                         const KeySplits &splits,
                                         int64_t blocks, int64_t shares,
                                         Value thread)
    : frame(frame), splits(splits), slots(frame.toI32(splits.getSlots())),
      blocks(blocks), shares(shares), thread(thread) {}

void PersistentScheduler::run(Value given,
                              function_ref<Value(Value)> countItems,
                              function_ref<void(const ScheduledItem &)> body) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value entries = frame.toI32(given);
  Type i32 = builder.getI32Type();
  state.emplace(frame);
  Value zero = frame.i32(0);
  running.thread = thread;
  frame.runIf(isFirstThread(), [&] {
    state->store(SchedulerState::Next,
                 {getWorkspace(slots).takeItem(), zero, zero, zero});
    state->store(SchedulerState::Slots, {slots, zero, zero, zero});
  });
  auto findNext = [&](OpBuilder &, Location, ValueRange) {
    // The next item is stored, and the one before has ended.
    gpu::BarrierOp::create(builder, loc);
    Value lane = frame.rem(frame.toI32(copyThread()), kWarp);
    SmallVector<Value> next = state->load(SchedulerState::Next);
    Value item = next[0], wholeItem = frame.div(item, shares);
    EntryGroup group = EntrySearch(frame, lane, entries, countItems)
                           .find(wholeItem, next[1], next[2]);
    // The lane whose entry has the item, if there is one.
    Value number = frame.sub(frame.sub(wholeItem, group.before),
                             frame.sub(group.inclusive, group.own));
    Value having = NVVM::VoteSyncOp::create(builder, loc, i32, frame.i32(-1),
                                            frame.below(number, group.own),
                                            NVVM::VoteSyncKind::ballot);
    Value first = LLVM::CountTrailingZerosOp::create(builder, loc, i32, having,
                                                     /*is_zero_poison=*/false);
    Value entry = frame.add(group.base, first);
    scf::ConditionOp::create(
        builder, loc, frame.below(zero, having),
        ValueRange{item, group.base, group.before, group.total, entry,
                   shuffle(frame, number, first), next[3]});
  };
  auto runItem = [&](OpBuilder &, Location, ValueRange found) {
    running = {found[1], found[2], copyThread(), Value()};
    running.slots = unify(state->load(SchedulerState::Slots)[0]);
    Value entry = unify(found[4]), number = unify(found[5]);
    Value share = unify(frame.rem(found[0], shares));
    frame.runIf(isFirstThread(), [&] {
      state->store(SchedulerState::Running, {entry, number, share, zero});
    });
    body({frame.fromI32(entry), frame.fromI32(number), frame.fromI32(share),
          running.thread, frame.fromI32(running.slots), unify(found[6])});
    scf::YieldOp::create(builder, loc);
  };
  auto loop = scf::WhileOp::create(builder, loc, SmallVector<Type>(7, i32),
                                   ValueRange(), findNext, runItem);
  // Each block has taken one number that is no item's. The last one clears.
  running.thread = thread;
  Value item = loop.getResult(0);
  Value items =
      frame.mul(frame.add(loop.getResult(2), loop.getResult(3)), shares);
  Value isLast = frame.equal(frame.add(item, frame.i32(1)),
                             frame.add(items, frame.i32(blocks)));
  frame.runIf(arith::AndIOp::create(builder, loc, isFirstThread(), isLast),
              [&] {
                Value stored = state->load(SchedulerState::Slots)[0];
                getWorkspace(stored).clearItems();
              });
}

Value PersistentScheduler::take() const {
  return frame.selectIf(
      isFirstThread(), [&] { return getWorkspace(running.slots).takeItem(); },
      [&] { return frame.i32(0); });
}

void PersistentScheduler::store(Value taken, Value carried) const {
  frame.runIf(isFirstThread(), [&] {
    state->store(SchedulerState::Next,
                 {taken, running.base, running.before, carried});
  });
}

ScheduledItem PersistentScheduler::getItem() const {
  SmallVector<Value> item = state->load(SchedulerState::Running);
  auto get = [&](Value number) { return frame.fromI32(unify(number)); };
  return {get(item[0]),
          get(item[1]),
          get(item[2]),
          running.thread,
          get(state->load(SchedulerState::Slots)[0]),
          Value()};
}

Value PersistentScheduler::copyThread() const {
  return OpaqueThreadOp::create(frame.builder, frame.loc,
                                frame.builder.getIndexType());
}

Value PersistentScheduler::unify(Value number) const {
  // Compilers do not move it out of loops, and ptxas has the result in a
  // uniform register.
  return NVVM::ReduxOp::create(frame.builder, frame.loc, number.getType(),
                               number, NVVM::ReduxKind::UMAX, frame.i32(-1));
}

Workspace PersistentScheduler::getWorkspace(Value slotCount) const {
  return splits.getWorkspace(frame.fromI32(slotCount));
}

Value PersistentScheduler::isFirstThread() const {
  return frame.equal(running.thread, frame.index(0));
}
