//===- UnitSchedule.cpp - Units of work that blocks take ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UnitSchedule.h"

#include "../Attention/AttentionChoices.h"
#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The rows of the tile, and numbers in one: the next unit, the base of the
/// group of the last one, the units before it, and what is carried; the entry,
/// number and share of the unit that runs; the slots of the workspace.
constexpr int64_t kNext = 0, kRunning = 1, kSlots = 2, kStateRows = 3,
                  kNumbers = 4;

UnitSchedule::UnitSchedule(const Frame &frame, const KeySplits &splits,
                           int64_t blocks, int64_t shares, Value thread)
    : frame(frame), builder(frame.builder), loc(frame.loc), splits(splits),
      slots(frame.toI32(splits.getSlots())), blocks(blocks), shares(shares),
      thread(thread) {}

void UnitSchedule::run(Value given, function_ref<Value(Value)> countOfEntry,
                       function_ref<void(const ScheduledUnit &)> body) {
  entries = frame.toI32(given);
  countUnits = countOfEntry;
  Type i32 = builder.getI32Type();
  tile = AllocTileOp::create(builder, loc,
                             TileType::get(builder.getContext(), kStateRows,
                                           kNumbers, i32, Swizzle::None),
                             IntegerAttr());
  Value zero = frame.i32(0);
  sameThread = thread;
  frame.runIf(isFirstThread(), [&] {
    store(kNext, {getWorkspace(slots).takeUnit(), zero, zero, zero});
    store(kSlots, {slots, zero, zero, zero});
  });
  auto findNext = [&](OpBuilder &, Location, ValueRange) {
    // The next unit is stored, and the one before has ended.
    gpu::BarrierOp::create(builder, loc);
    lane = frame.rem(frame.toI32(copyThread()), kWarp);
    SmallVector<Value> state = load(kNext);
    Value unit = state[0], wholeUnit = frame.div(unit, shares);
    Group group = find(wholeUnit, state[1], state[2]);
    // The lane whose entry has the unit, if there is one.
    Value number = frame.sub(frame.sub(wholeUnit, group.before),
                             frame.sub(group.inclusive, group.own));
    Value having = NVVM::VoteSyncOp::create(builder, loc, i32, frame.i32(-1),
                                            frame.below(number, group.own),
                                            NVVM::VoteSyncKind::ballot);
    Value first = LLVM::CountTrailingZerosOp::create(builder, loc, i32, having,
                                                     /*is_zero_poison=*/false);
    Value entry = frame.add(group.base, first);
    scf::ConditionOp::create(builder, loc, frame.below(zero, having),
                             ValueRange{unit, group.base, group.before,
                                        group.total, entry,
                                        shuffle(number, first), state[3]});
  };
  auto runUnit = [&](OpBuilder &, Location, ValueRange found) {
    base = found[1];
    before = found[2];
    sameThread = copyThread();
    sameSlots = unify(load(kSlots)[0]);
    Value entry = unify(found[4]), number = unify(found[5]);
    Value share = unify(frame.rem(found[0], shares));
    frame.runIf(isFirstThread(),
                [&] { store(kRunning, {entry, number, share, zero}); });
    body({frame.fromI32(entry), frame.fromI32(number), frame.fromI32(share),
          sameThread, frame.fromI32(sameSlots), unify(found[6])});
    scf::YieldOp::create(builder, loc);
  };
  auto loop = scf::WhileOp::create(builder, loc, SmallVector<Type>(7, i32),
                                   ValueRange(), findNext, runUnit);
  // Each block has taken one number that is no unit's. The last one clears.
  sameThread = thread;
  Value unit = loop.getResult(0);
  Value units =
      frame.mul(frame.add(loop.getResult(2), loop.getResult(3)), shares);
  Value isLast = frame.equal(frame.add(unit, frame.i32(1)),
                             frame.add(units, frame.i32(blocks)));
  frame.runIf(arith::AndIOp::create(builder, loc, isFirstThread(), isLast),
              [&] { getWorkspace(load(kSlots)[0]).clearUnits(); });
}

UnitSchedule::Group UnitSchedule::find(Value unit, Value base,
                                       Value before) const {
  Type i32 = builder.getI32Type();
  auto loop = scf::WhileOp::create(
      builder, loc, SmallVector<Type>(5, i32), ValueRange{base, before},
      [&](OpBuilder &, Location, ValueRange state) {
        Group group = count(state[0], state[1]);
        Value isAfterGroup =
            arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                  frame.sub(unit, group.before), group.total);
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

UnitSchedule::Group UnitSchedule::count(Value base, Value before) const {
  Value entry = frame.add(base, lane), zero = frame.i32(0);
  Value own = frame.selectIf(
      frame.below(entry, entries),
      [&] { return frame.toI32(countUnits(frame.fromI32(entry))); },
      [&] { return zero; });
  Value sum = own;
  for (int32_t offset = 1; offset < kWarp; offset *= 2) {
    Value other = gpu::ShuffleOp::create(builder, loc, sum, offset, kWarp,
                                         gpu::ShuffleMode::UP)
                      .getShuffleResult();
    Value isThere = frame.below(lane, frame.i32(offset));
    sum = frame.add(
        sum, arith::SelectOp::create(builder, loc, isThere, zero, other));
  }
  return {base, before, shuffle(sum, frame.i32(kWarp - 1)), sum, own};
}

Value UnitSchedule::shuffle(Value value, Value from) const {
  return gpu::ShuffleOp::create(builder, loc, value, from, frame.i32(kWarp),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

Value UnitSchedule::take() const {
  return frame.selectIf(
      isFirstThread(), [&] { return getWorkspace(sameSlots).takeUnit(); },
      [&] { return frame.i32(0); });
}

void UnitSchedule::store(Value taken, Value carried) const {
  frame.runIf(isFirstThread(),
              [&] { store(kNext, {taken, base, before, carried}); });
}

ScheduledUnit UnitSchedule::getUnit() const {
  SmallVector<Value> unit = load(kRunning);
  auto get = [&](Value number) { return frame.fromI32(unify(number)); };
  return {get(unit[0]), get(unit[1]),         get(unit[2]),
          sameThread,   get(load(kSlots)[0]), Value()};
}

Value UnitSchedule::copyThread() const {
  return OpaqueThreadOp::create(builder, loc, builder.getIndexType());
}

Value UnitSchedule::unify(Value number) const {
  // Compilers do not move it out of loops, and ptxas has the result in a
  // uniform register.
  return NVVM::ReduxOp::create(builder, loc, number.getType(), number,
                               NVVM::ReduxKind::UMAX, frame.i32(-1));
}

Workspace UnitSchedule::getWorkspace(Value slots) const {
  return splits.getWorkspace(frame.fromI32(slots));
}

Value UnitSchedule::isFirstThread() const {
  return frame.equal(sameThread, frame.index(0));
}

SmallVector<Value> UnitSchedule::load(int64_t row) const {
  Value numbers = TileLoadOp::create(
      builder, loc, VectorType::get(kNumbers, builder.getI32Type()), tile,
      frame.index(row), frame.index(0));
  auto elements = vector::ToElementsOp::create(builder, loc, numbers);
  return SmallVector<Value>(elements.getResults());
}

void UnitSchedule::store(int64_t row, ValueRange numbers) const {
  Value vector = vector::FromElementsOp::create(
      builder, loc, VectorType::get(kNumbers, builder.getI32Type()), numbers);
  TileStoreOp::create(builder, loc, vector, tile, frame.index(row),
                      frame.index(0));
}
