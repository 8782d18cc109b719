//===- Barriers.cpp - Barriers of a block as calls ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Barriers.h"
#include "Families.h"

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

FailureOr<bool> kvcache::lowerBarrier(Operation *op, EmulatorCalls &calls) {
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
