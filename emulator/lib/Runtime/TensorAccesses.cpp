//===- TensorAccesses.cpp - tcgen05 of warps ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grid.h"
#include "MBarrier.h"
#include "WarpConvergence.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

/// Fails unless all lanes of the warp give the same for an operand.
template <typename Lane, typename Field>
static void checkUniform(Block &block, WarpConvergence &convergence,
                         Field Lane::*field, const char *operand) {
  const Lane &first = convergence.get<Lane>(0);
  convergence.forEach<Lane>([&](uint32_t number, Lane &lane) {
    if (lane.*field != first.*field)
      block.fail(*lane.thread, convergence.site,
                 std::string("gives another ") + operand +
                     " than lane 0: " + "lane " + std::to_string(number) +
                     " of the warp must have the same");
  });
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

namespace {
struct AllocLane : WarpLane {
  void *to = nullptr;
  uint32_t address = 0, columns = 0;
  bool isOfPair = false;
  std::shared_ptr<TensorMemory::Request> request;
};
} // namespace

static void allocate(Block &block, WarpConvergence &convergence) {
  checkUniform(block, convergence, &AllocLane::to, "address");
  checkUniform(block, convergence, &AllocLane::columns, "number of columns");
  const AllocLane &first = convergence.get<AllocLane>(0);
  auto request = block.tensorMemory.allocate(
      *first.thread, convergence.site, first.to, first.columns, first.isOfPair);
  convergence.forEach<AllocLane>(
      [&](uint32_t, AllocLane &lane) { lane.request = request; });
}

static void deallocate(Block &block, WarpConvergence &convergence) {
  checkUniform(block, convergence, &AllocLane::address, "address");
  checkUniform(block, convergence, &AllocLane::columns, "number of columns");
  const AllocLane &first = convergence.get<AllocLane>(0);
  block.tensorMemory.deallocate(*first.thread, convergence.site, first.address,
                                first.columns);
}

static void relinquish(Block &block, WarpConvergence &) {
  block.tensorMemory.relinquish();
}

void kvcacheEmulatorTmemAlloc(KVCacheThread *self, const KVCacheSite *site,
                              void *to, int32_t columns, uint32_t isOfPair) {
  Thread &thread = Thread::get(self);
  Block &block = *thread.block;
  AllocLane lane;
  lane.to = to;
  lane.columns = columns;
  lane.isOfPair = isOfPair;
  block.warps.converge(thread, site, kAllLanes, allocate, lane,
                       WarpRule::AllLanes);
  block.tensorMemory.wait(thread, site, *lane.request);
}

void kvcacheEmulatorTmemDealloc(KVCacheThread *self, const KVCacheSite *site,
                                const void *address, int32_t columns) {
  Thread &thread = Thread::get(self);
  AllocLane lane;
  lane.address = TensorMemory::toAddress(address);
  lane.columns = columns;
  thread.block->warps.converge(thread, site, kAllLanes, deallocate, lane,
                               WarpRule::AllLanes);
}

void kvcacheEmulatorTmemRelinquish(KVCacheThread *self,
                                   const KVCacheSite *site) {
  Thread &thread = Thread::get(self);
  WarpLane lane;
  thread.block->warps.converge(thread, site, kAllLanes, relinquish, lane,
                               WarpRule::AllLanes);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

namespace {
struct TensorLane : WarpLane {
  uint32_t address = 0, shape = 0, count = 0;
  int64_t offset = 0;
  bool isPacked = false;
  KVCacheTmemRegisters *registers = nullptr;
  uint32_t number = 0;
};

struct WordPlace {
  uint32_t lane, column;
};
} // namespace

/// Where a register of a lane is, from the address on. PTX ISA, "Matrix
/// fragments for shape".
static WordPlace getPlace(uint32_t shape, uint32_t lane, uint32_t reg) {
  uint32_t row = lane / 4;
  switch (shape) {
  case KVCacheTmem16x64b:
    return {row + 8 * (lane % 2), lane / 2 % 2 + 2 * reg};
  case KVCacheTmem16x128b:
    return {row + 8 * (reg % 2), lane % 4 + 4 * (reg / 2)};
  case KVCacheTmem16x256b:
    return {row + 8 * (reg / 2 % 2), reg % 2 + 2 * (lane % 4) + 8 * (reg / 4)};
  case KVCacheTmem16x32bx2:
    return {lane % 16, reg};
  default:
    return {lane, reg};
  }
}

/// The columns that a load or a store spans, of each half of 16x32bx2.
static uint32_t countColumns(const TensorLane &lane) {
  const uint32_t perRegister[] = {2, 2, 2, 1, 1};
  return lane.count * perRegister[lane.shape] * (lane.isPacked ? 2 : 1);
}

/// PTX ISA, "Access restrictions": warp w of four has the lanes from 32 w on,
/// which are the data paths that it reaches.
static void checkLanes(Block &block, WarpConvergence &convergence) {
  const TensorLane &first = convergence.get<TensorLane>(0);
  uint32_t lane = first.address >> 16;
  uint32_t begin = convergence.warp % 4 * 32;
  auto fail = [&](const std::string &what) {
    block.fail(*first.thread, convergence.site,
               "accesses tensor memory at lane " + std::to_string(lane) + ", " +
                   what);
  };
  if (lane < begin || lane >= begin + 32)
    fail("but warp " + std::to_string(convergence.warp) + " reaches lanes " +
         std::to_string(begin) + " to " + std::to_string(begin + 31) + " only");
  uint32_t alignment = first.shape == KVCacheTmem32x32b ? 32 : 16;
  if (lane % alignment != 0)
    fail("which must be a multiple of " + std::to_string(alignment) +
         " for this shape");
}

/// The regions that a load or a store accesses.
static std::vector<TensorRegion> getRegions(const TensorLane &lane) {
  uint32_t columns = countColumns(lane);
  uint32_t rows = lane.shape == KVCacheTmem32x32b ? 32 : 16;
  TensorRegion region{lane.address >> 16, lane.address & 0xffff, rows, columns};
  if (lane.shape != KVCacheTmem16x32bx2)
    return {region};
  TensorRegion second = region;
  second.column += static_cast<uint32_t>(lane.offset);
  return {region, second};
}

static void begin(Block &block, WarpConvergence &convergence, TensorOp op) {
  checkUniform(block, convergence, &TensorLane::address, "address");
  checkLanes(block, convergence);
  const TensorLane &first = convergence.get<TensorLane>(0);
  TensorMemory &memory = block.tensorMemory;
  std::vector<TensorRegion> regions = getRegions(first);
  for (const TensorRegion &region : regions)
    memory.check(*first.thread, convergence.site, region);
  if (!block.isSanitized())
    return;
  TensorOrder &order = block.cluster.tensorOrder;
  uint32_t number = order.issue(*first.thread, op);
  order.begin({convergence.site, op, first.thread->index, number});
  for (const TensorRegion &region : regions)
    memory.touch(region, op == TensorOp::Store);
  convergence.forEach<TensorLane>(
      [&](uint32_t, TensorLane &lane) { lane.number = number; });
}

/// Calls `visit` with each register of each lane and the place of its word, or
/// of its first word.
template <typename Visitor>
static void forEachRegister(WarpConvergence &convergence, Visitor visit) {
  convergence.forEach<TensorLane>([&](uint32_t number, TensorLane &lane) {
    uint32_t scale = lane.isPacked ? 2 : 1;
    uint32_t column = lane.address & 0xffff;
    if (lane.shape == KVCacheTmem16x32bx2 && number >= 16)
      column += static_cast<uint32_t>(lane.offset);
    for (uint32_t reg = 0; reg < lane.count; ++reg) {
      WordPlace place = getPlace(lane.shape, number, reg);
      visit(lane, reg,
            WordPlace{(lane.address >> 16) + place.lane,
                      column + place.column * scale});
    }
  });
}

static void load(Block &block, WarpConvergence &convergence) {
  begin(block, convergence, TensorOp::Load);
  TensorMemory &memory = block.tensorMemory;
  convergence.forEach<TensorLane>(
      [&](uint32_t, TensorLane &lane) { lane.registers->origin = 0; });
  forEachRegister(convergence, [&](TensorLane &lane, uint32_t reg,
                                   WordPlace place) {
    KVCacheTmemRegisters &registers = *lane.registers;
    TensorWord word = memory.read(convergence.site, place.lane, place.column);
    if (lane.isPacked) {
      const TensorWord &high =
          memory.read(convergence.site, place.lane, place.column + 1);
      constexpr uint32_t half = 0xffff;
      word.value = (word.value & half) | high.value << 16;
      word.poison = (word.poison & half) | high.poison << 16;
      if (!word.origin)
        word.origin = high.origin;
    }
    registers.values[reg] = word.value;
    registers.poison[reg] = word.poison;
    if (word.poison && !registers.origin)
      registers.origin = word.origin;
  });
}

static void store(Block &block, WarpConvergence &convergence) {
  begin(block, convergence, TensorOp::Store);
  TensorMemory &memory = block.tensorMemory;
  forEachRegister(
      convergence, [&](TensorLane &lane, uint32_t reg, WordPlace place) {
        const KVCacheTmemRegisters &registers = *lane.registers;
        uint32_t value = registers.values[reg];
        uint32_t poison = registers.origin ? registers.poison[reg] : 0;
        auto write = [&](uint32_t column, uint32_t value, uint32_t poison) {
          memory.write(place.lane, column, value, poison,
                       poison ? registers.origin : 0);
        };
        if (!lane.isPacked)
          return write(place.column, value, poison);
        constexpr uint32_t half = 0xffff;
        write(place.column, value & half, poison & half);
        write(place.column + 1, value >> 16, poison >> 16);
      });
}

static TensorLane makeLane(const void *address, int64_t offset, uint32_t shape,
                           uint32_t count, uint32_t isPacked,
                           KVCacheTmemRegisters *registers) {
  TensorLane lane;
  lane.address = TensorMemory::toAddress(address);
  lane.offset = offset;
  lane.shape = shape;
  lane.count = count;
  lane.isPacked = isPacked;
  lane.registers = registers;
  return lane;
}

uint32_t kvcacheEmulatorTmemLoad(KVCacheThread *self, const KVCacheSite *site,
                                 const void *address, int64_t offset,
                                 uint32_t shape, uint32_t count,
                                 uint32_t isPacked,
                                 KVCacheTmemRegisters *registers) {
  Thread &thread = Thread::get(self);
  TensorLane lane =
      makeLane(address, offset, shape, count, isPacked, registers);
  thread.block->warps.converge(thread, site, kAllLanes, load, lane,
                               WarpRule::AllLanes);
  return lane.number;
}

void kvcacheEmulatorTmemStore(KVCacheThread *self, const KVCacheSite *site,
                              const void *address, int64_t offset,
                              uint32_t shape, uint32_t count, uint32_t isPacked,
                              KVCacheTmemRegisters *registers) {
  Thread &thread = Thread::get(self);
  TensorLane lane =
      makeLane(address, offset, shape, count, isPacked, registers);
  thread.block->warps.converge(thread, site, kAllLanes, store, lane,
                               WarpRule::AllLanes);
}

static void waitForLoads(Block &block, WarpConvergence &convergence) {
  block.cluster.tensorOrder.wait(*convergence.get<WarpLane>(0).thread,
                                 TensorOp::Load);
}

static void waitForStores(Block &block, WarpConvergence &convergence) {
  block.cluster.tensorOrder.wait(*convergence.get<WarpLane>(0).thread,
                                 TensorOp::Store);
}

void kvcacheEmulatorTmemWait(KVCacheThread *self, const KVCacheSite *site,
                             uint32_t isStore) {
  Thread &thread = Thread::get(self);
  WarpLane lane;
  thread.block->warps.converge(thread, site, kAllLanes,
                               isStore ? waitForStores : waitForLoads, lane,
                               WarpRule::AllLanes);
}

void kvcacheEmulatorTmemUse(KVCacheThread *self, const KVCacheSite *site,
                            uint32_t load) {
  Thread &thread = Thread::get(self);
  if (!thread.block->cluster.tensorOrder.hasWaited(thread, TensorOp::Load,
                                                   load))
    thread.block->fail(thread, site,
                       "uses what a load from tensor memory has in flight: "
                       "no wait for it has completed (tcgen05.wait load)");
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void kvcacheEmulatorTmemFence(KVCacheThread *self, const KVCacheSite *,
                              uint32_t isAfter) {
  Thread &thread = Thread::get(self);
  if (!thread.block->isSanitized())
    return;
  TensorOrder &order = thread.block->cluster.tensorOrder;
  if (isAfter)
    order.fenceAfter(thread);
  else
    order.fenceBefore(thread);
}
