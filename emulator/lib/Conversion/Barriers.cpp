//===- Barriers.cpp - Barriers of a block as calls ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Barriers.h"
#include "Families.h"
#include "kvcache/Emulator/Clusters.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

static uint32_t getReduction(NVVM::BarrierOp op) {
  std::optional<NVVM::BarrierReduction> reduction = op.getReductionOp();
  if (!reduction)
    return KVCacheBarrierNone;
  switch (*reduction) {
  case NVVM::BarrierReduction::POPC:
    return KVCacheBarrierPopc;
  case NVVM::BarrierReduction::AND:
    return KVCacheBarrierAnd;
  case NVVM::BarrierReduction::OR:
    return KVCacheBarrierOr;
  }
  return KVCacheBarrierNone;
}

static void lowerSync(NVVM::BarrierOp op, EmulatorCalls &calls) {
  constexpr int64_t all = -1;
  OpBuilder builder(op);
  Value id = op.getBarrierId() ? op.getBarrierId() : calls.getI32(op, 0);
  Value count = calls.getI64(op, all);
  if (op.getNumberOfThreads())
    count = LLVM::ZExtOp::create(builder, op.getLoc(), calls.i64,
                                 op.getNumberOfThreads());
  Value predicate = op.getReductionPredicate();
  if (!predicate)
    predicate = calls.getI32(op, 0);
  Value result =
      calls.call(op, "kvcacheEmulatorBarrier", calls.i32,
                 {id, count, calls.getI32(op, getReduction(op)), predicate});
  if (op.getRes())
    op.getRes().replaceAllUsesWith(result);
  op.erase();
}

static void lowerSyncAll(NVVM::Barrier0Op op, EmulatorCalls &calls) {
  constexpr int64_t all = -1;
  Value zero = calls.getI32(op, 0);
  calls.call(op, "kvcacheEmulatorBarrier", calls.i32,
             {zero, calls.getI64(op, all), zero, zero});
  op.erase();
}

/// The barrier of a cluster, and addresses in other blocks.
static bool lowerClusterOp(Operation *op, EmulatorCalls &calls) {
  auto lower = [&](StringRef function, std::optional<bool> isAligned,
                   bool isRelaxed) {
    uint32_t flags = (isAligned.value_or(false) ? KVCacheClusterAligned : 0) |
                     (isRelaxed ? KVCacheClusterRelaxed : 0);
    calls.replaceByCall(op, function, calls.getI32(op, flags));
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::ClusterArriveOp op) {
        return lower("kvcacheEmulatorClusterArrive", op.getAligned(),
                     /*isRelaxed=*/false);
      })
      .Case([&](NVVM::ClusterArriveRelaxedOp op) {
        return lower("kvcacheEmulatorClusterArrive", op.getAligned(),
                     /*isRelaxed=*/true);
      })
      .Case([&](NVVM::ClusterWaitOp op) {
        return lower("kvcacheEmulatorClusterWait", op.getAligned(),
                     /*isRelaxed=*/false);
      })
      .Case([&](NVVM::MapaOp op) {
        OpBuilder builder(op);
        Value address = calls.call(op, "kvcacheEmulatorMapShared",
                                   calls.pointerType, {op.getA(), op.getB()});
        if (address.getType() != op.getType())
          address = LLVM::AddrSpaceCastOp::create(builder, op.getLoc(),
                                                  op.getType(), address);
        op.replaceAllUsesWith(address);
        op.erase();
        return true;
      })
      // It has no op.
      .Case([&](LLVM::CallIntrinsicOp op) {
        if (!op.getIntrin().starts_with("llvm.nvvm.getctarank") ||
            op->getNumResults() != 1 || op.getArgs().size() != 1)
          return false;
        calls.replaceByCall(op, "kvcacheEmulatorGetRank", op.getArgs());
        return true;
      })
      .Default(false);
}

FailureOr<bool> kvcache::lowerBarrier(Operation *op, EmulatorCalls &calls) {
  if (lowerClusterOp(op, calls))
    return true;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::Barrier0Op op) {
        lowerSyncAll(op, calls);
        return true;
      })
      .Case([&](NVVM::BarrierOp op) {
        lowerSync(op, calls);
        return true;
      })
      .Case([&](NVVM::BarrierArriveOp op) {
        Value id = op.getBarrierId() ? op.getBarrierId() : calls.getI32(op, 0);
        calls.replaceByCall(op, "kvcacheEmulatorBarrierArrive",
                            {id, op.getNumberOfThreads()});
        return true;
      })
      .Default(false);
}
