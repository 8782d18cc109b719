//===- SpecialRegisters.cpp - Special registers of a thread ---------------===//
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
      .Case<NVVM::TotalSmemSize, NVVM::AggrSmemSize>(
          [](Operation *) { return offsetof(KVCacheThread, sharedBytes); })
      .Case([](NVVM::DynamicSmemSize) {
        return offsetof(KVCacheThread, dynamicSharedBytes);
      })
      .Case([&](NVVM::LaneIdOp) { return offsetof(KVCacheThread, lane); })
      .Case([&](NVVM::WarpIdOp) { return offsetof(KVCacheThread, warp); })
      .Default(std::nullopt);
}

/// Finds the offset of a special register in KVCacheCluster.
static std::optional<size_t> getClusterFieldOffset(Operation *op) {
  auto in = [](size_t field, size_t dimension) {
    return field + dimension * sizeof(uint32_t);
  };
  constexpr size_t ctaid = offsetof(KVCacheCluster, ctaid);
  constexpr size_t nctaid = offsetof(KVCacheCluster, nctaid);
  constexpr size_t clusterid = offsetof(KVCacheCluster, clusterid);
  constexpr size_t nclusterid = offsetof(KVCacheCluster, nclusterid);
  return llvm::TypeSwitch<Operation *, std::optional<size_t>>(op)
      .Case([&](NVVM::BlockInClusterIdXOp) { return in(ctaid, 0); })
      .Case([&](NVVM::BlockInClusterIdYOp) { return in(ctaid, 1); })
      .Case([&](NVVM::BlockInClusterIdZOp) { return in(ctaid, 2); })
      .Case([&](NVVM::ClusterDimBlocksXOp) { return in(nctaid, 0); })
      .Case([&](NVVM::ClusterDimBlocksYOp) { return in(nctaid, 1); })
      .Case([&](NVVM::ClusterDimBlocksZOp) { return in(nctaid, 2); })
      .Case([&](NVVM::ClusterIdXOp) { return in(clusterid, 0); })
      .Case([&](NVVM::ClusterIdYOp) { return in(clusterid, 1); })
      .Case([&](NVVM::ClusterIdZOp) { return in(clusterid, 2); })
      .Case([&](NVVM::ClusterDimXOp) { return in(nclusterid, 0); })
      .Case([&](NVVM::ClusterDimYOp) { return in(nclusterid, 1); })
      .Case([&](NVVM::ClusterDimZOp) { return in(nclusterid, 2); })
      .Case([](NVVM::ClusterId) { return offsetof(KVCacheCluster, rank); })
      .Case(
          [](NVVM::ClusterDim) { return offsetof(KVCacheCluster, numBlocks); })
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

/// A number for the block, as if one ran on each multiprocessor in turn.
static Value getMultiprocessor(Operation *op, EmulatorCalls &calls,
                               int64_t count) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto load = [&](size_t field, size_t dimension) {
    return calls.loadField(op, field + dimension * sizeof(uint32_t), calls.i32);
  };
  Value number = load(offsetof(KVCacheThread, ctaid), 2);
  for (size_t dimension : {1, 0}) {
    Value side = load(offsetof(KVCacheThread, nctaid), dimension);
    number = LLVM::MulOp::create(builder, loc, number, side);
    number = LLVM::AddOp::create(
        builder, loc, number, load(offsetof(KVCacheThread, ctaid), dimension));
  }
  return LLVM::URemOp::create(builder, loc, number, calls.getI32(op, count));
}

/// Nanoseconds, as wide as the register.
static Value getClock(Operation *op, EmulatorCalls &calls) {
  Value time = calls.call(op, "kvcacheEmulatorClock", calls.i64, {});
  Type type = op->getResult(0).getType();
  OpBuilder builder(op);
  return type == calls.i64
             ? time
             : LLVM::TruncOp::create(builder, op->getLoc(), type, time);
}

/// The environment registers: PTX ISA, %envreg<32>. What a driver has in them
/// is not specified.
static bool isEnvironmentRegister(Operation *op) {
  return op->getName().getStringRef().starts_with("nvvm.read.ptx.sreg.envreg");
}

/// Registers that are computed; null for others.
static Value compute(Operation *op, EmulatorCalls &calls) {
  constexpr uint32_t lanes = 32, all = ~0u;
  // Of an H100; the 2048 threads of a multiprocessor are 64 warps.
  constexpr int64_t multiprocessors = 132, maxWarps = 64;
  if (isEnvironmentRegister(op))
    return calls.getI32(op, 0);
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
      .Case([&](NVVM::WarpDimOp) { return calls.getI32(op, maxWarps); })
      .Case([&](NVVM::SmDimOp) { return calls.getI32(op, multiprocessors); })
      .Case([&](NVVM::SmIdOp) {
        return getMultiprocessor(op, calls, multiprocessors);
      })
      .Case([&](NVVM::GridIdOp) { return calls.getI32(op, 0); })
      .Case<NVVM::ClockOp, NVVM::Clock64Op, NVVM::GlobalTimerOp,
            NVVM::GlobalTimerLoOp>(
          [&](Operation *op) { return getClock(op, calls); })
      .Default(Value());
}

FailureOr<bool> kvcache::lowerRegister(Operation *op, EmulatorCalls &calls) {
  Value value;
  if (std::optional<size_t> offset = getFieldOffset(op))
    value = calls.loadField(op, *offset, calls.i32);
  else if (std::optional<size_t> offset = getClusterFieldOffset(op))
    value = calls.loadClusterField(op, *offset, calls.i32);
  else
    value = compute(op, calls);
  if (!value)
    return false;
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
  return true;
}
