//===- Copies.cpp - Copies that are waited for one by one
//--------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkRows.h"
#include "Expansion.h"
#include "Source.h"
#include "TensorCopies.h"
#include "ThreadCopies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::kvcache;

static bool isCopy(Operation *op) {
  return isa<AsyncLoadTileOp, AsyncGatherTileOp>(op);
}

static Value getTile(Operation *copy) {
  if (auto load = dyn_cast<AsyncLoadTileOp>(copy))
    return load.getTile();
  return cast<AsyncGatherTileOp>(copy).getTile();
}

bool kvcache::hasOwnWait(Operation *copy) {
  Value token = copy->getResult(0);
  if (!token.hasOneUse())
    return false;
  Operation *user = *token.user_begin();
  return isa<WaitOp>(user) && user->getBlock() == copy->getBlock();
}

/// Whether the op may run more than once in a kernel.
static bool mayRepeat(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return op->getParentOfType<LoopLikeOpInterface>() ||
         !function.getFunctionBody().hasOneBlock();
}

//===----------------------------------------------------------------------===//
// What must have happened before a copy
//===----------------------------------------------------------------------===//

/// Whether some op may write to the tile other than by the copies of hardware
/// units.
static bool mayBeWritten(Value tile, const Plans &plans) {
  // Others may know of memory that was given to the tile.
  if (!tile.getDefiningOp<AllocTileOp>())
    return true;
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    if (isCopy(user)) {
      Way way = plans.lookup(user).choice.way;
      return way == Way::Plain || way == Way::AsyncCopy;
    }
    return !isa<TileLoadOp, TileOffsetOp>(user);
  });
}

/// Whether nothing can have touched the tile before the copy.
static bool isFirstUse(Operation *copy) {
  Value tile = getTile(copy);
  if (!tile.getDefiningOp<AllocTileOp>() || mayRepeat(copy))
    return false;
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    Operation *ancestor = copy->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && (ancestor == copy || copy->isBeforeInBlock(ancestor));
  });
}

/// The first of the copies that come right after one another up to this one:
/// what it waits for is enough for all of them.
static Operation *getFirstOfRun(Operation *copy) {
  Operation *first = copy;
  for (Operation *op = copy->getPrevNode(); op; op = op->getPrevNode()) {
    if (isCopy(op))
      first = op;
    else if (!isMemoryEffectFree(op))
      break;
  }
  return first;
}

/// Whether a unit of the hardware copies over what threads have written.
static bool needsFence(Operation *copy, const Plans &plans) {
  Way way = plans.lookup(copy).choice.way;
  return way != Way::Plain && way != Way::AsyncCopy &&
         mayBeWritten(getTile(copy), plans);
}

/// What all threads do before a copy: none of them may still use its tile.
static void synchronize(Operation *copy, bool withFence) {
  OpBuilder builder(copy);
  IndexBuilder b(builder, copy->getLoc());
  if (withFence)
    emitProxyFence(b);
  gpu::BarrierOp::create(builder, b.loc);
}

//===----------------------------------------------------------------------===//
// One copy
//===----------------------------------------------------------------------===//

namespace {

class OneCopy {
public:
  OneCopy(Operation *copy, const Plan &plan, const Chip *chip,
          KernelSetup *setup)
      : copy(copy), plan(plan), chip(chip), setup(setup), builder(copy),
        b(builder, copy->getLoc()) {}

  void expand() {
    switch (plan.choice.way) {
    case Way::Plain:
      emitPlain(builder, copy, b.getAll());
      break;
    case Way::AsyncCopy:
      emitAsyncCopy(builder, copy, plan.choice, b.getAll());
      NVVM::CpAsyncCommitGroupOp::create(builder, b.loc);
      break;
    case Way::Boxes:
    case Way::Gather:
      expandTensorCopies();
      break;
    case Way::BulkRows:
      expandBulkRows();
      break;
    }
  }

private:
  void expandTensorCopies() {
    Barrier barrier =
        createBarrier([](const BlockBuilder &b) { return b.index(1); });
    setup->runInIssuer(b, [&](const Issuer &issuer) {
      TensorCopies copies(b, issuer, barrier);
      copies.add(copy, plan.choice, plan.descriptor);
      b.runIf(issuer.isElected, [&] {
        TMAExpectOp::create(builder, b.loc, barrier.group, barrier.index,
                            b.index(getTileBytes(copy)));
      });
      copies.issue();
    });
    waitFor(barrier);
  }

  void expandBulkRows() {
    Barrier barrier = createBarrier([](const BlockBuilder &b) {
      return b.min(b.getAll().count, b.index(BlockBuilder::kWarp));
    });
    setup->runInFirstWarp(b, [&](Threads lanes) {
      emitBulkRows(builder, copy, lanes, barrier);
      emitArrive(b, barrier);
    });
    waitFor(barrier);
  }

  Barrier createBarrier(function_ref<Value(const BlockBuilder &b)> count) {
    auto group = setup->createBarriers(1);
    setup->initialize(group, 0, count);
    return {group, b.index(0)};
  }

  /// Replaces the wait. Each use of the barrier is a phase: its parity changes
  /// where the copy repeats.
  void waitFor(Barrier barrier) {
    auto wait = cast<WaitOp>(*copy->getResult(0).user_begin());
    OpBuilder builder(wait);
    IndexBuilder b(builder, wait.getLoc());
    barrier.index = b.index(0);
    if (!mayRepeat(copy)) {
      emitWait(b, barrier, b.i32(0), *chip);
    } else {
      Value variable = setup->createVariable();
      Value parity = memref::LoadOp::create(builder, b.loc, variable);
      emitWait(b, barrier, parity, *chip);
      Value next = arith::XOrIOp::create(builder, b.loc, parity, b.i32(1));
      memref::StoreOp::create(builder, b.loc, next, variable, ValueRange());
    }
    wait.erase();
  }

  Operation *copy;
  Plan plan;
  const Chip *chip;
  KernelSetup *setup;
  OpBuilder builder;
  BlockBuilder b;
};

} // namespace

/// Waits for whatever this thread has started, and for the other threads.
static void expandWait(WaitOp wait, const Chip *chip) {
  OpBuilder builder(wait);
  if (isInGPUCode(wait)) {
    if (chip)
      NVVM::CpAsyncWaitGroupOp::create(builder, wait.getLoc(), /*n=*/0);
    gpu::BarrierOp::create(builder, wait.getLoc());
  }
  wait.erase();
}

void kvcache::expandCopies(ArrayRef<Operation *> copies, ArrayRef<WaitOp> waits,
                           const Plans &plans, const Chip *chip,
                           KernelSetup *setup) {
  // Where threads meet, and whether with a fence.
  llvm::MapVector<Operation *, bool> meetings;
  for (Operation *copy : copies)
    if (isInGPUCode(copy) && !isFirstUse(copy))
      meetings[getFirstOfRun(copy)] |= needsFence(copy, plans);
  for (WaitOp wait : waits) {
    Operation *copy = wait.getToken().getDefiningOp();
    Way way = copy ? plans.lookup(copy).choice.way : Way::Plain;
    if (way == Way::Plain || way == Way::AsyncCopy)
      expandWait(wait, chip);
  }
  for (auto [copy, withFence] : meetings)
    synchronize(copy, withFence);
  for (Operation *copy : copies)
    OneCopy(copy, plans.lookup(copy), chip, setup).expand();
  for (Operation *copy : copies) {
    // What a token holds is of no consequence.
    if (!copy->use_empty()) {
      OpBuilder builder(copy);
      copy->replaceAllUsesWith(ub::PoisonOp::create(
          builder, copy->getLoc(), copy->getResult(0).getType()));
    }
    copy->erase();
  }
}
