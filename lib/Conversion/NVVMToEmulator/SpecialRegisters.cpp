//===- SpecialRegisters.cpp - What a thread knows of itself ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Emulator/ABI.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

/// The offset of the field of KVCacheThread that a register is; none for those
/// that are not in the thread.
static std::optional<size_t> getFieldOffset(Operation *op) {
  auto in = [](size_t field, size_t dimension) {
    return field + dimension * sizeof(uint32_t);
  };
  constexpr size_t tid = offsetof(KVCacheThread, tid);
  constexpr size_t ntid = offsetof(KVCacheThread, ntid);
  constexpr size_t ctaid = offsetof(KVCacheThread, ctaid);
  constexpr size_t nctaid = offsetof(KVCacheThread, nctaid);
  return llvm::TypeSwitch<Operation *, std::optional<size_t>>(op)
      .Case([&](NVVM::ThreadIdXOp) { return in(tid, 0); })
      .Case([&](NVVM::ThreadIdYOp) { return in(tid, 1); })
      .Case([&](NVVM::ThreadIdZOp) { return in(tid, 2); })
      .Case([&](NVVM::BlockDimXOp) { return in(ntid, 0); })
      .Case([&](NVVM::BlockDimYOp) { return in(ntid, 1); })
      .Case([&](NVVM::BlockDimZOp) { return in(ntid, 2); })
      .Case([&](NVVM::BlockIdXOp) { return in(ctaid, 0); })
      .Case([&](NVVM::BlockIdYOp) { return in(ctaid, 1); })
      .Case([&](NVVM::BlockIdZOp) { return in(ctaid, 2); })
      .Case([&](NVVM::GridDimXOp) { return in(nctaid, 0); })
      .Case([&](NVVM::GridDimYOp) { return in(nctaid, 1); })
      .Case([&](NVVM::GridDimZOp) { return in(nctaid, 2); })
      .Case([&](NVVM::LaneIdOp) { return offsetof(KVCacheThread, lane); })
      .Case([&](NVVM::WarpIdOp) { return offsetof(KVCacheThread, warp); })
      .Default(std::nullopt);
}

/// The bits of the lanes that stand in a relation to this one: `all` shifted by
/// the lane, or its complement.
static Value getLaneMask(Operation *op, EmulatorCalls &calls, uint32_t all,
                         bool isComplement) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value lane = calls.loadField(op, offsetof(KVCacheThread, lane), calls.i32);
  Value mask = LLVM::ShlOp::create(builder, loc, calls.getI32(op, all), lane);
  if (isComplement)
    mask = LLVM::XOrOp::create(builder, loc, mask, calls.getI32(op, -1));
  return mask;
}

/// Registers that are computed; null for others.
static Value compute(Operation *op, EmulatorCalls &calls) {
  constexpr uint32_t lanes = 32, all = ~0u;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](NVVM::WarpSizeOp) { return calls.getI32(op, lanes); })
      .Case([&](NVVM::LaneMaskEqOp) {
        return getLaneMask(op, calls, 1, /*isComplement=*/false);
      })
      .Case([&](NVVM::LaneMaskGeOp) {
        return getLaneMask(op, calls, all, /*isComplement=*/false);
      })
      .Case([&](NVVM::LaneMaskGtOp) {
        return getLaneMask(op, calls, all - 1, /*isComplement=*/false);
      })
      .Case([&](NVVM::LaneMaskLtOp) {
        return getLaneMask(op, calls, all, /*isComplement=*/true);
      })
      .Case([&](NVVM::LaneMaskLeOp) {
        return getLaneMask(op, calls, all - 1, /*isComplement=*/true);
      })
      .Default(Value());
}

FailureOr<bool> kvcache::lowerRegister(Operation *op, EmulatorCalls &calls) {
  Value value;
  if (std::optional<size_t> offset = getFieldOffset(op))
    value = calls.loadField(op, *offset, calls.i32);
  else
    value = compute(op, calls);
  if (!value)
    return false;
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
  return true;
}
