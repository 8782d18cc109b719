//===- LowerCopies.cpp - Lower copies into tiles --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkRows.h"
#include "CacheStores.h"
#include "Choice.h"
#include "KernelSetup.h"
#include "TensorCopies.h"
#include "ThreadCopies.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERCOPIES
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// Whether the op may run more than once in a kernel.
static bool mayRepeat(Operation *op) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return op->getParentOfType<LoopLikeOpInterface>() ||
         !function.getFunctionBody().hasOneBlock();
}

//===----------------------------------------------------------------------===//
// Synchronization before a copy
//===----------------------------------------------------------------------===//

/// Whether an op neither writes the tile nor gives it to other ops. Products
/// write registers or tensor memory, which have no resource of their own.
static bool onlyReads(Operation *user, Value tile) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(user);
  return isa<TileOffsetOp, MmaOp, TmemMmaOp>(user) ||
         (effects && effects.onlyHasEffect<MemoryEffects::Read>() &&
          effects.getEffectOnValue<MemoryEffects::Read>(tile) &&
          user->getNumRegions() == 0);
}

/// Whether some op, and not a unit of the hardware, may write to the tile.
static bool mayBeWritten(Value tile) {
  // Other ops may write memory that was given to the tile.
  if (!tile.getDefiningOp<AllocTileOp>())
    return true;
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    if (auto copy = dyn_cast<TileCopyOpInterface>(user))
      return !isByUnit(*copy.getCopy());
    return !onlyReads(user, tile);
  });
}

/// Whether nothing can have touched the tile before the copy.
static bool isFirstUse(TileCopyOpInterface copy) {
  Value tile = copy.getTile();
  if (!tile.getDefiningOp<AllocTileOp>() || mayRepeat(copy))
    return false;
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    Operation *ancestor = copy->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && (ancestor == copy || copy->isBeforeInBlock(ancestor));
  });
}

/// The first of the consecutive copies up to this one: a wait before it is
/// enough for all of them.
static Operation *getFirstOfRun(Operation *copy) {
  Operation *first = copy;
  for (Operation *op = copy->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<TileCopyOpInterface>(op))
      first = op;
    else if (!isMemoryEffectFree(op))
      break;
  }
  return first;
}

/// Whether a unit of the hardware copies over data that threads have written.
static bool needsFence(TileCopyOpInterface copy) {
  return isByUnit(*copy.getCopy()) && mayBeWritten(copy.getTile());
}

namespace {
/// The synchronization of threads before consecutive copies.
struct Synchronization {
  bool withFence = false;
  /// Whether threads of all blocks of the cluster synchronize.
  bool isCluster = false;
};
} // namespace

/// Synchronizes all threads before a copy: none of them may still use its tile.
static void synchronize(Operation *copy,
                        const Synchronization &synchronization) {
  OpBuilder builder(copy);
  IndexBuilder b(builder, copy->getLoc());
  if (synchronization.withFence)
    emitProxyFence(b);
  if (synchronization.isCluster)
    emitClusterBarrier(b);
  else
    gpu::BarrierOp::create(builder, b.loc);
}

//===----------------------------------------------------------------------===//
// One copy
//===----------------------------------------------------------------------===//

namespace {

class OneCopy {
public:
  OneCopy(TileCopyOpInterface copy, const Chip *chip, KernelSetup *setup,
          const CacheStores &stores)
      : copy(copy), chip(chip), setup(setup), stores(stores), builder(copy),
        b(builder, copy->getLoc()) {}

  void lower() {
    switch (*copy.getCopy()) {
    case CopyKind::Plain:
      emitPlain(builder, copy, b.getAll());
      break;
    case CopyKind::CpAsync:
      emitAsyncCopy(builder, copy, b.getAll());
      NVVM::CpAsyncCommitGroupOp::create(builder, b.loc);
      break;
    case CopyKind::TensorBoxes:
    case CopyKind::TensorRows:
      lowerTensorCopies();
      break;
    case CopyKind::BulkRows:
      lowerBulkRows();
      break;
    }
  }

private:
  void lowerTensorCopies() {
    Barrier barrier =
        createBarrier([](const BlockBuilder &b) { return b.index(1); });
    if (copy.isMulticast())
      setup->meetInCluster();
    setup->runInIssuer(b, [&](const Issuer &issuer) {
      TensorCopies copies(b, issuer, barrier);
      copies.add(copy);
      b.runIf(issuer.isElected, [&] {
        emitFenceOfCache();
        TMAExpectOp::create(builder, b.loc, barrier.group, barrier.index,
                            b.index(copy.getTileLayout().getBytes()));
      });
      copies.issue();
    });
    waitFor(barrier);
  }

  void lowerBulkRows() {
    Barrier barrier = createBarrier([](const BlockBuilder &b) {
      return b.min(b.getAll().count, b.index(BlockBuilder::kWarp));
    });
    setup->runInFirstWarp(b, [&](Threads lanes) {
      emitFenceOfCache();
      emitBulkRows(builder, copy, lanes, barrier);
      emitArrive(b, barrier);
    });
    waitFor(barrier);
  }

  void emitFenceOfCache() {
    if (stores.mayWrite(copy.getAccessedCache()))
      emitGlobalProxyFence(b);
  }

  Barrier createBarrier(function_ref<Value(const BlockBuilder &b)> count) {
    auto group = setup->createBarriers(1);
    setup->initialize(group, 0, count);
    return {group, b.index(0)};
  }

  /// Replaces the wait. Each use of the barrier is a phase: if the copy
  /// repeats, the parity changes.
  void waitFor(Barrier barrier) {
    auto wait = cast<WaitOp>(*copy.getTokenOfCopy().user_begin());
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

  TileCopyOpInterface copy;
  const Chip *chip;
  KernelSetup *setup;
  const CacheStores &stores;
  OpBuilder builder;
  BlockBuilder b;
};

} // namespace

/// Waits for all copies that this thread has started, and for the other
/// threads.
static void lowerWait(WaitOp wait, const Chip *chip, bool withFence) {
  OpBuilder builder(wait);
  if (isInGPUCode(wait)) {
    if (chip)
      NVVM::CpAsyncWaitGroupOp::create(builder, wait.getLoc(), /*n=*/0);
    if (withFence)
      emitProxyFence(IndexBuilder(builder, wait.getLoc()));
    gpu::BarrierOp::create(builder, wait.getLoc());
  }
  wait.erase();
}

/// Synchronizes all threads before the copies that need it, with a fence if one
/// of them does.
static void synchronize(ArrayRef<TileCopyOpInterface> copies) {
  llvm::MapVector<Operation *, Synchronization> synchronizations;
  for (TileCopyOpInterface copy : copies) {
    if (!isInGPUCode(copy) || isFirstUse(copy))
      continue;
    Synchronization &synchronization = synchronizations[getFirstOfRun(copy)];
    synchronization.withFence |= needsFence(copy);
    synchronization.isCluster |= copy.isMulticast();
  }
  for (const auto &[copy, synchronization] : synchronizations)
    synchronize(copy, synchronization);
}

/// Whether the copy of a wait has a barrier of its own.
static bool isForUnit(WaitOp wait) {
  auto copy = wait.getToken().getDefiningOp<TileCopyOpInterface>();
  return copy && isByUnit(*copy.getCopy());
}

/// Erases a copy. A token that is left has no meaning.
static void eraseCopy(TileCopyOpInterface copy) {
  if (!copy->use_empty()) {
    OpBuilder builder(copy);
    copy->replaceAllUsesWith(ub::PoisonOp::create(
        builder, copy->getLoc(), copy.getTokenOfCopy().getType()));
  }
  copy->erase();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

/// The copies of a function that are not in a pipe, and its waits.
struct Copies {
  explicit Copies(FunctionOpInterface function) : site(function) {
    function.walk([&](Operation *op) {
      if (auto copy = dyn_cast<TileCopyOpInterface>(op);
          copy && !isa<ProduceOp>(op->getParentOp()))
        copies.push_back(copy);
      else if (auto wait = dyn_cast<WaitOp>(op))
        waits.push_back(wait);
      hasStores |= isa<TMAStoreOp>(op);
    });
  }

  CopySite site;
  SmallVector<TileCopyOpInterface> copies;
  SmallVector<WaitOp> waits;
  bool hasStores = false;
};

struct LowerCopies : kvcache::impl::LowerCopiesBase<LowerCopies> {
  void runOnOperation() override {
    WalkResult result =
        getOperation()->walk([&](FunctionOpInterface function) -> WalkResult {
          return lower(function);
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Checks that the copy of each wait is known if it may be a store, for which
  /// the wait has another instruction.
  static LogicalResult checkWaits(const Copies &all) {
    for (WaitOp wait : all.waits) {
      Operation *copy = wait.getToken().getDefiningOp();
      if (all.hasStores &&
          !isa_and_present<TileCopyOpInterface, TMAStoreOp>(copy))
        return wait.emitOpError("expects the token of a copy itself, in a "
                                "function with 'kvcache.tma_store'");
    }
    return success();
  }

  LogicalResult lower(FunctionOpInterface function) {
    Copies all(function);
    for (TileCopyOpInterface copy : all.copies)
      if (failed(checkLowerable(copy, all.site)))
        return failure();
    if (failed(checkWaits(all)))
      return failure();
    synchronize(all.copies);
    bool withFence = hasProducts(function);
    for (WaitOp wait : all.waits)
      // `convert-kvcache-to-nvvm` lowers the wait for a store.
      if (!isForUnit(wait) && !wait.getToken().getDefiningOp<TMAStoreOp>())
        lowerWait(wait, all.site.chip, withFence);
    std::optional<KernelSetup> setup;
    if (all.site.kernel)
      setup.emplace(all.site.kernel, *all.site.chip);
    if (!all.copies.empty()) {
      CacheStores stores(function, getOperation());
      for (TileCopyOpInterface copy : all.copies)
        OneCopy(copy, all.site.chip, setup ? &*setup : nullptr, stores).lower();
    }
    for (TileCopyOpInterface copy : all.copies)
      eraseCopy(copy);
    KernelSetup::finish(function);
    numCopies += all.copies.size();
    return success();
  }
};

} // namespace
