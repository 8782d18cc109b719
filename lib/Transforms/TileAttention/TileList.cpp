//===- TileList.cpp - The tiles that rows of a block see ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileList.h"

#include "../Builders/WarpVote.h"
#include "../PlanAttention/TileSizes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The states of an entry before the list is compact.
constexpr int64_t kUnseen = 0, kPart = 1, kWhole = 2;

void TileList::allocate() { entries.emplace(frame, kListNumbers); }

Value TileList::make(Value thread, int64_t threads, Value count,
                     function_ref<AdmittedPairs(Value tile)> classify) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  auto select = [&](Value condition, Value then, Value otherwise) -> Value {
    return arith::SelectOp::create(builder, loc, condition, then, otherwise);
  };
  Value looked = frame.min(count, frame.index(kListedTiles));
  // A persistent kernel has read the list of the work item before.
  gpu::BarrierOp::create(builder, loc);
  frame.loop(thread, looked, frame.index(threads), [&](Value tile) {
    AdmittedPairs seen = classify(tile);
    Value ifAny = select(seen.all, frame.i32(kWhole), frame.i32(kPart));
    entries->store(select(seen.any, ifAny, frame.i32(kUnseen)), tile);
  });
  gpu::BarrierOp::create(builder, loc);
  frame.runIf(frame.below(thread, frame.index(kWarp)),
              [&] { compact(thread, looked); });
  gpu::BarrierOp::create(builder, loc);
  listed = frame.fromI32(entries->load(frame.index(kListedTiles)));
  return frame.add(listed, frame.sub(count, looked));
}

void TileList::compact(Value lane, Value count) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Type i32 = builder.getI32Type();
  Value before = getLowerLanes(frame, lane);
  auto loop = scf::ForOp::create(
      builder, loc, frame.index(0), count, frame.index(kWarp),
      ValueRange{frame.i32(0)},
      [&](OpBuilder &, Location, Value first, ValueRange length) {
        Value tile = frame.add(first, lane);
        Value state = frame.selectIf(
            frame.below(tile, count), [&] { return entries->load(tile); },
            [&] { return frame.i32(kUnseen); });
        Value isSeen = frame.below(frame.i32(kUnseen), state);
        Value votes = ballot(frame, isSeen);
        // An entry that is stored may be another lane's that was loaded.
        NVVM::SyncWarpOp::create(builder, loc, frame.i32(-1));
        frame.runIf(isSeen, [&] {
          Value own = countLanes(frame, votes, before);
          Value isPart = arith::ExtUIOp::create(
              builder, loc, i32, frame.equal(state, frame.i32(kPart)));
          Value number = frame.mul(frame.toI32(tile), frame.i32(2));
          entries->store(frame.add(number, isPart),
                         frame.fromI32(frame.add(length[0], own)));
        });
        scf::YieldOp::create(builder, loc,
                             frame.add(length[0], countLanes(frame, votes)));
      });
  frame.runIf(frame.equal(lane, frame.index(0)), [&] {
    entries->store(loop.getResult(0), frame.index(kListedTiles));
  });
}

Value TileList::getTile(Value place) const {
  return frame.selectIf(
      frame.below(place, listed),
      [&] { return frame.fromI32(frame.div(entries->load(place), 2)); },
      [&] {
        return frame.add(frame.sub(place, listed), frame.index(kListedTiles));
      });
}

Value TileList::isPart(Value place) const {
  return frame.selectIf(
      frame.below(place, listed),
      [&] {
        return frame.equal(frame.rem(entries->load(place), 2), frame.i32(1));
      },
      [&]() -> Value {
        return arith::ConstantOp::create(frame.builder, frame.loc,
                                         frame.builder.getBoolAttr(true));
      });
}
