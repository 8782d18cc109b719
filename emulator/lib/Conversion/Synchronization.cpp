//===- Synchronization.cpp - mbarriers, fences, launches as calls ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Synchronization.h"
#include "Families.h"
#include "Predicates.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

/// Replaces an op that arrives at an mbarrier; null for `count` is 1, for
/// `bytes` none.
static void lowerArrive(Operation *op, EmulatorCalls &calls, Value barrier,
                        Value count, Value bytes, uint32_t flags) {
  if (!count)
    count = calls.getI32(op, 1);
  if (!bytes)
    bytes = calls.getI32(op, 0);
  Value state = calls.call(op, "kvcacheEmulatorMBarrierArrive", calls.i64,
                           {barrier, count, bytes, calls.getI32(op, flags)});
  if (op->getNumResults() == 1)
    op->getResult(0).replaceAllUsesWith(state);
  op->erase();
}

/// How one of the ops that arrive or wait orders accesses.
template <typename OpT> static uint32_t getFlags(OpT op) {
  bool isOfCluster = op.getScope() == NVVM::MemScopeKind::CLUSTER;
  return (op.getRelaxed() ? KVCacheMBarrierRelaxed : 0) |
         (isOfCluster ? KVCacheMBarrierCluster : 0);
}

/// One of the ops that arrive.
static bool lowerArrival(Operation *op, EmulatorCalls &calls) {
  constexpr uint32_t drop = KVCacheMBarrierDrop;
  constexpr uint32_t noComplete = KVCacheMBarrierNoComplete;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::MBarrierArriveOp op) {
        lowerArrive(op, calls, op.getAddr(), op.getCount(), {}, getFlags(op));
        return true;
      })
      .Case([&](NVVM::MBarrierArriveDropOp op) {
        lowerArrive(op, calls, op.getAddr(), op.getCount(), {},
                    drop | getFlags(op));
        return true;
      })
      .Case([&](NVVM::MBarrierArriveNocompleteOp op) {
        lowerArrive(op, calls, op.getAddr(), op.getCount(), {}, noComplete);
        return true;
      })
      .Case([&](NVVM::MBarrierArriveDropNocompleteOp op) {
        lowerArrive(op, calls, op.getAddr(), op.getCount(), {},
                    drop | noComplete);
        return true;
      })
      .Case([&](NVVM::MBarrierArriveExpectTxOp op) {
        branchOnPredicate(op, op.getPredicate());
        lowerArrive(op, calls, op.getAddr(), {}, op.getTxcount(), getFlags(op));
        return true;
      })
      .Case([&](NVVM::MBarrierArriveDropExpectTxOp op) {
        lowerArrive(op, calls, op.getAddr(), {}, op.getTxcount(),
                    drop | getFlags(op));
        return true;
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// Replaces an op that tests whether a phase has completed.
static void lowerTest(Operation *op, EmulatorCalls &calls, Value barrier,
                      Value stateOrParity, uint32_t howTo) {
  Value flags = calls.getI32(op, howTo);
  bool isParity = stateOrParity.getType() == calls.i32;
  Value done = calls.call(op,
                          isParity ? "kvcacheEmulatorMBarrierTestParity"
                                   : "kvcacheEmulatorMBarrierTestState",
                          calls.i32, {barrier, stateOrParity, flags});
  OpBuilder builder(op);
  op->getResult(0).replaceAllUsesWith(
      LLVM::TruncOp::create(builder, op->getLoc(), calls.i1, done));
  op->erase();
}

static bool lowerAnyWait(Operation *op, EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::MBarrierTestWaitOp op) {
        lowerTest(op, calls, op.getAddr(), op.getStateOrPhase(), getFlags(op));
        return true;
      })
      .Case([&](NVVM::MBarrierTryWaitOp op) {
        lowerTest(op, calls, op.getAddr(), op.getStateOrPhase(), getFlags(op));
        return true;
      })
      .Case([&](NVVM::MBarrierTryWaitParityOp op) {
        // The op is a loop around the instruction.
        calls.replaceByCall(op, "kvcacheEmulatorMBarrierWaitParity",
                            {op.getAddr(), op.getPhase()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Other operations on mbarriers
//===----------------------------------------------------------------------===//

static bool lowerMBarrier(Operation *op, EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::MBarrierInitOp op) {
        branchOnPredicate(op, op.getPredicate());
        calls.replaceByCall(op, "kvcacheEmulatorMBarrierInit",
                            {op.getAddr(), op.getCount()});
        return true;
      })
      .Case([&](NVVM::MBarrierInvalOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorMBarrierInval", op.getAddr());
        return true;
      })
      .Case([&](NVVM::MBarrierExpectTxOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorMBarrierExpectTx",
                            {op.getAddr(), op.getTxcount()});
        return true;
      })
      .Case([&](NVVM::MBarrierCompleteTxOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorMBarrierCompleteTx",
                            {op.getAddr(), op.getTxcount()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

static bool lowerFence(Operation *op, EmulatorCalls &calls, uint32_t kind) {
  calls.replaceByCall(op, "kvcacheEmulatorFence", calls.getI32(op, kind));
  return true;
}

static bool lowerMemoryFence(Operation *op, EmulatorCalls &calls,
                             uint32_t flags) {
  calls.replaceByCall(op, "kvcacheEmulatorFenceMemory",
                      calls.getI32(op, flags));
  return true;
}

static uint32_t getScopeFlags(NVVM::MemScopeKind scope) {
  uint32_t flags = KVCacheAccessAcquire | KVCacheAccessRelease;
  switch (scope) {
  case NVVM::MemScopeKind::CTA:
    return flags;
  case NVVM::MemScopeKind::CLUSTER:
    return flags | KVCacheAccessCluster;
  default:
    return flags | KVCacheAccessDevice;
  }
}

static uint32_t getFenceKind(NVVM::ProxyKind proxy) {
  switch (proxy) {
  case NVVM::ProxyKind::async:
    return KVCacheFenceAsync;
  case NVVM::ProxyKind::async_shared:
    return KVCacheFenceAsyncShared;
  case NVVM::ProxyKind::async_global:
    return KVCacheFenceAsyncGlobal;
  default:
    return KVCacheFenceMemory;
  }
}

static bool lowerAnyFence(Operation *op, EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::FenceProxyOp op) {
        return lowerFence(op, calls, getFenceKind(op.getKind()));
      })
      .Case([&](NVVM::FenceMbarrierInitOp op) {
        return lowerFence(op, calls, KVCacheFenceMBarrierInit);
      })
      .Case([&](NVVM::FenceProxyAcquireOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorFenceTensorMap",
                            {op.getAddr(), op.getSize()});
        return true;
      })
      .Case([&](NVVM::FenceProxyReleaseOp op) {
        return lowerFence(op, calls, KVCacheFenceMemory);
      })
      .Case([&](LLVM::FenceOp op) {
        return lowerMemoryFence(
            op, calls, getOrderFlags(op.getOrdering(), op.getSyncscope()));
      })
      .Case([&](NVVM::MembarOp op) {
        return lowerMemoryFence(op, calls, getScopeFlags(op.getScope()));
      })
      .Case([&](NVVM::FenceScClusterOp op) {
        return lowerMemoryFence(op, calls,
                                getScopeFlags(NVVM::MemScopeKind::CLUSTER));
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static bool lowerGridControl(Operation *op, EmulatorCalls &calls) {
  auto control = dyn_cast<NVVM::GriddepcontrolOp>(op);
  if (!control)
    return false;
  bool waits = control.getKind() == NVVM::GridDepActionKind::wait;
  calls.replaceByCall(op,
                      waits ? "kvcacheEmulatorWaitForLaunches"
                            : "kvcacheEmulatorStartDependents",
                      {});
  return true;
}

FailureOr<bool> kvcache::lowerSynchronization(Operation *op,
                                              EmulatorCalls &calls) {
  return lowerMBarrier(op, calls) || lowerArrival(op, calls) ||
         lowerAnyWait(op, calls) || lowerAnyFence(op, calls) ||
         lowerGridControl(op, calls);
}
