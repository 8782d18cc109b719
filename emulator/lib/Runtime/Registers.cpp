//===- Registers.cpp - The registers of a block ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Registers.h"
#include "WarpConvergence.h"

#include <array>
#include <string>

using namespace mlir::kvcache::emulator;

/// One setmaxnreg of a warp, and when its lanes executed it.
struct Registers::Change {
  const KVCacheSite *site = nullptr;
  uint32_t count = 0;
  bool isIncrease = false;
  std::array<uint32_t, kWarpSize> clocks = {};
};

struct Registers::Warp : Waitable {
  Warp(const Registers &registers, uint32_t number, uint32_t count)
      : registers(registers), number(number), count(count) {}

  std::string describe() const override {
    return std::to_string((wanted - count) * kWarpSize) +
           " registers for warp " + std::to_string(number) +
           ", where the block has " +
           std::to_string(registers.numFree * kWarpSize) +
           " that other warps have given back";
  }

  const Registers &registers;
  uint32_t number;
  /// The registers of each thread, and the number it waits for, or 0.
  uint32_t count, wanted = 0;
  std::vector<Change> changes;
};

Registers::Registers(Block &block) : block(block) {}

Registers::~Registers() = default;

void Registers::begin() {
  warps.clear();
  numFree = 0;
}

void Registers::prepare(const Thread &thread, const KVCacheSite *site) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute
  // Capability".
  constexpr uint64_t smRegisters = 65536;
  if (!warps.empty())
    return;
  uint32_t count = block.getGrid().kernel->registers;
  if (count == 0)
    block.fail(thread, site,
               "needs the number of registers that threads of the kernel begin "
               "with (nvvm.maxnreg, or nvvm.minctasm and the size of blocks)");
  uint32_t numWarps = (block.size() + kWarpSize - 1) / kWarpSize;
  uint64_t all = uint64_t{numWarps} * kWarpSize * count;
  if (all > smRegisters)
    block.fail(thread, site,
               "is in a block of " + std::to_string(block.size()) +
                   " threads that begin with " + std::to_string(count) +
                   " registers each, " + std::to_string(all) +
                   " in all: a multiprocessor has " +
                   std::to_string(smRegisters));
  for (uint32_t number = 0; number < numWarps; ++number)
    warps.push_back(std::make_unique<Warp>(*this, number, count));
}

//===----------------------------------------------------------------------===//
// The warps of a warpgroup
//===----------------------------------------------------------------------===//

/// Whether all lanes of a warp are ordered after its execution by another one.
bool Registers::isKnown(uint32_t warp, uint32_t other,
                        const Change &change) const {
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (uint32_t of = 0; of < kWarpSize; ++of)
      if (!block.sanitizer.isAfter(
              block.getThread(warp * kWarpSize + lane),
              block.getThread(other * kWarpSize + of).index, change.clocks[of]))
        return false;
  return true;
}

/// PTX ISA, "setmaxnreg": all warps of a warpgroup execute the same one, and
/// synchronize before the next.
void Registers::checkWarpgroup(const Thread &thread,
                               const Change &change) const {
  block.warpgroups.checkSize(thread, change.site);
  const Warp &warp = *warps[thread.warp];
  size_t place = warp.changes.size();
  uint32_t first = thread.warp - thread.warp % Warpgroups::kNumWarps;
  for (uint32_t i = first; i < first + Warpgroups::kNumWarps; ++i) {
    const Warp &other = *warps[i];
    if (i == thread.warp)
      continue;
    std::string name = "warp " + std::to_string(i) + " of its warpgroup";
    if (other.changes.size() > place &&
        other.changes[place].site != change.site)
      block.fail(thread, change.site,
                 "executes it where " + name + " has executed " +
                     Block::describe(other.changes[place].site) +
                     ": all warps of a warpgroup must execute the same one");
    if (place == 0 || !block.isSanitized())
      continue;
    const Change &before = warp.changes[place - 1];
    if (other.changes.size() < place ||
        !isKnown(thread.warp, i, other.changes[place - 1]))
      block.fail(
          thread, change.site,
          "executes it without a synchronization of the warpgroup after " +
              Block::describe(before.site) + ", which " + name +
              " may not have executed yet");
  }
}

void Registers::end() const {
  for (const std::unique_ptr<Warp> &warp : warps) {
    size_t count = warp->changes.size();
    if (count == 0)
      continue;
    uint32_t first = warp->number - warp->number % Warpgroups::kNumWarps;
    for (uint32_t i = first; i < first + Warpgroups::kNumWarps; ++i)
      if (warps[i]->changes.size() < count)
        block.fail(block.getThread(warp->number * kWarpSize),
                   warp->changes.back().site,
                   "has executed it, and warp " + std::to_string(i) +
                       " of its warpgroup has not: all warps of a warpgroup "
                       "must execute the same one");
  }
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

namespace {
struct RegisterLane : WarpLane {
  uint32_t count = 0;
  bool isIncrease = false;
};
} // namespace

void Registers::change(WarpConvergence &convergence) {
  const RegisterLane &lane = convergence.get<RegisterLane>(0);
  const Thread &thread = *lane.thread;
  constexpr uint32_t least = 24, most = 256, unit = 8;
  if (lane.count < least || lane.count > most || lane.count % unit)
    block.fail(
        thread, convergence.site,
        "expects a number of registers that is a multiple of 8 from 24 to "
        "256, got " +
            std::to_string(lane.count));
  prepare(thread, convergence.site);
  Warp &warp = *warps[convergence.warp];
  Change change{convergence.site, lane.count, lane.isIncrease};
  for (uint32_t of = 0; of < kWarpSize; ++of)
    change.clocks[of] = block.sanitizer.getClock(
        block.getThread(convergence.warp * kWarpSize + of));
  checkWarpgroup(thread, change);
  if (lane.isIncrease ? lane.count < warp.count : lane.count > warp.count)
    block.fail(thread, convergence.site,
               std::string(lane.isIncrease ? "increases" : "decreases") +
                   " the number of registers to " + std::to_string(lane.count) +
                   ", but the thread has " + std::to_string(warp.count));
  warp.changes.push_back(change);
  if (lane.count > warp.count) {
    warp.wanted = lane.count;
    return;
  }
  numFree += warp.count - lane.count;
  warp.count = lane.count;
  block.noteProgress();
  for (const std::unique_ptr<Warp> &other : warps)
    block.wake(*other);
}

void Registers::wait(Thread &thread, const KVCacheSite *site) {
  Warp &warp = *warps[thread.warp];
  while (warp.wanted > 0) {
    uint32_t more = warp.wanted - warp.count;
    if (more > numFree) {
      block.wait(thread, site, warp);
      continue;
    }
    numFree -= more;
    warp.count = warp.wanted;
    warp.wanted = 0;
    block.wake(warp);
  }
}

static void changeRegisters(Block &block, WarpConvergence &convergence) {
  block.registers.change(convergence);
}

void kvcacheEmulatorSetMaxRegisters(KVCacheThread *self,
                                    const KVCacheSite *site, uint32_t count,
                                    uint32_t isIncrease) {
  Thread &thread = Thread::get(self);
  RegisterLane lane;
  lane.count = count;
  lane.isIncrease = isIncrease != 0;
  thread.block->warps.converge(thread, site, kAllLanes, changeRegisters, lane,
                               WarpRule::AllLanes);
  thread.block->registers.wait(thread, site);
}
