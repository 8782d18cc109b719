//===- AsyncCopies.cpp - Asynchronous copies as calls ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/AsyncCopies.h"
#include "Families.h"
#include "Predicates.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

static FailureOr<bool> rejectForm(Operation *op, const Twine &form) {
  return op->emitOpError(form) << " has no lowering for the emulator";
}

//===----------------------------------------------------------------------===//
// Copies by threads
//===----------------------------------------------------------------------===//

static bool lowerThreadCopy(Operation *op, EmulatorCalls &calls) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](NVVM::CpAsyncOp op) {
        Value bytes = calls.getI32(op, op.getSize());
        Value sourceBytes = op.getCpSize() ? op.getCpSize() : bytes;
        calls.replaceByCall(op, "kvcacheEmulatorCopyAsync",
                            {op.getDst(), op.getSrc(), bytes, sourceBytes});
        return true;
      })
      .Case([&](NVVM::CpAsyncCommitGroupOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorCopyAsyncCommit", {});
        return true;
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorCopyAsyncWait",
                            calls.getI32(op, op.getN()));
        return true;
      })
      .Case([&](NVVM::CpAsyncMBarrierArriveOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorCopyAsyncArrive",
                            {op.getAddr(), calls.getI32(op, op.getNoinc())});
        return true;
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

/// Appends the mode and the coordinates to the operands of a call.
static void addCoordinates(Operation *op, EmulatorCalls &calls, bool isRows,
                           ValueRange coordinates,
                           SmallVectorImpl<Value> &operands) {
  constexpr size_t maxCoordinates = 5;
  operands.push_back(
      calls.getI32(op, isRows ? KVCacheTensorRows : KVCacheTensorTile));
  operands.push_back(calls.getI32(op, coordinates.size()));
  llvm::append_range(operands, coordinates);
  for (size_t i = coordinates.size(); i < maxCoordinates; ++i)
    operands.push_back(calls.getI32(op, 0));
}

/// The operand of a call for the blocks of the cluster to copy to; -1 for none.
static Value getMask(Operation *op, Value mask, EmulatorCalls &calls) {
  OpBuilder builder(op);
  return mask ? LLVM::ZExtOp::create(builder, op->getLoc(), calls.i32, mask)
                    .getResult()
              : calls.getI32(op, -1);
}

static FailureOr<bool>
lowerTensorLoad(NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op,
                EmulatorCalls &calls) {
  bool isRows = op.getMode() == NVVM::TMALoadMode::TILE_GATHER4;
  if (!isRows && op.getMode() != NVVM::TMALoadMode::TILE)
    return rejectForm(op, "in mode " + stringifyTMALoadMode(op.getMode()));
  branchOnPredicate(op, op.getPredicate());
  bool isOfPair = op.getGroup() == NVVM::CTAGroupKind::CTA_2;
  SmallVector<Value> operands{
      op.getDstMem(), op.getTmaDescriptor(), op.getMbar(),
      getMask(op, op.getMulticastMask(), calls), calls.getI32(op, isOfPair)};
  addCoordinates(op, calls, isRows, op.getCoordinates(), operands);
  calls.replaceByCall(op, "kvcacheEmulatorTensorLoad", operands);
  return true;
}

static FailureOr<bool>
lowerTensorStore(NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op,
                 EmulatorCalls &calls) {
  bool isRows = op.getMode() == NVVM::TMAStoreMode::TILE_SCATTER4;
  if (!isRows && op.getMode() != NVVM::TMAStoreMode::TILE)
    return rejectForm(op, "in mode " + stringifyTMAStoreMode(op.getMode()));
  branchOnPredicate(op, op.getPredicate());
  SmallVector<Value> operands{op.getTmaDescriptor(), op.getSrcMem()};
  addCoordinates(op, calls, isRows, op.getCoordinates(), operands);
  calls.replaceByCall(op, "kvcacheEmulatorTensorStore", operands);
  return true;
}

static FailureOr<bool> lowerTensorPrefetch(NVVM::CpAsyncBulkTensorPrefetchOp op,
                                           EmulatorCalls &calls) {
  bool isRows = op.getMode() == NVVM::TMALoadMode::TILE_GATHER4;
  if (!isRows && op.getMode() != NVVM::TMALoadMode::TILE)
    return rejectForm(op, "in mode " + stringifyTMALoadMode(op.getMode()));
  SmallVector<Value> operands{op.getTmaDescriptor()};
  addCoordinates(op, calls, isRows, op.getCoordinates(), operands);
  calls.replaceByCall(op, "kvcacheEmulatorTensorPrefetch", operands);
  return true;
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

static void lowerBulkLoad(NVVM::CpAsyncBulkGlobalToSharedClusterOp op,
                          EmulatorCalls &calls) {
  calls.replaceByCall(op, "kvcacheEmulatorBulkLoad",
                      {op.getDstMem(), op.getSrcMem(), op.getMbar(),
                       op.getSize(),
                       getMask(op, op.getMulticastMask(), calls)});
}

static void lowerBulkStore(NVVM::CpAsyncBulkSharedCTAToGlobalOp op,
                           EmulatorCalls &calls) {
  constexpr int64_t all = 0xffff;
  OpBuilder builder(op);
  Value mask = op.getByteMask()
                   ? LLVM::ZExtOp::create(builder, op.getLoc(), calls.i32,
                                          op.getByteMask())
                         .getResult()
                   : calls.getI32(op, all);
  calls.replaceByCall(op, "kvcacheEmulatorBulkStore",
                      {op.getDstMem(), op.getSrcMem(), op.getSize(), mask});
}

static void lowerBulkWait(NVVM::CpAsyncBulkWaitGroupOp op,
                          EmulatorCalls &calls) {
  calls.replaceByCall(op, "kvcacheEmulatorBulkWait",
                      {calls.getI32(op, op.getGroup()),
                       calls.getI32(op, op.getRead().value_or(false))});
}

/// Caches have no effect on what a kernel computes.
static void lowerPrefetch(NVVM::PrefetchOp op, EmulatorCalls &calls) {
  if (!op.getTensormap())
    return op.erase();
  branchOnPredicate(op, op.getPredicate());
  calls.replaceByCall(op, "kvcacheEmulatorPrefetchTensorMap", op.getAddr());
}

FailureOr<bool> kvcache::lowerAsyncCopy(Operation *op, EmulatorCalls &calls) {
  if (lowerThreadCopy(op, calls))
    return true;
  return llvm::TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
        return lowerTensorLoad(op, calls);
      })
      .Case([&](NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op) {
        return lowerTensorStore(op, calls);
      })
      .Case([&](NVVM::CpAsyncBulkTensorPrefetchOp op) {
        return lowerTensorPrefetch(op, calls);
      })
      .Case([&](NVVM::CpAsyncBulkGlobalToSharedClusterOp op) {
        lowerBulkLoad(op, calls);
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkSharedCTAToSharedClusterOp op) {
        calls.replaceByCall(
            op, "kvcacheEmulatorBulkCopyShared",
            {op.getDstMem(), op.getSrcMem(), op.getMbar(), op.getSize()});
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkSharedCTAToGlobalOp op) {
        lowerBulkStore(op, calls);
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkPrefetchOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorBulkPrefetch",
                            {op.getSrcMem(), op.getSize()});
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkCommitGroupOp op) {
        calls.replaceByCall(op, "kvcacheEmulatorBulkCommit", {});
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkWaitGroupOp op) {
        lowerBulkWait(op, calls);
        return true;
      })
      .Case([&](NVVM::PrefetchOp op) {
        lowerPrefetch(op, calls);
        return true;
      })
      .Default([](Operation *) { return false; });
}
