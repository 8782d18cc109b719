//===- Warps.cpp - Convergence of the threads of a warp -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Warps.h"
#include "Grid.h"
#include "WarpConvergence.h"
#include "kvcache/Emulator/Matrices.h"

#include <algorithm>
#include <cstdio>
#include <new>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string Warps::describeMask(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

std::string Warps::describeLanes(uint32_t lanes) {
  std::vector<uint32_t> numbers;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    numbers.push_back(__builtin_ctz(rest));
  return (numbers.size() == 1 ? "lane " : "lanes ") + listRanges(numbers);
}

std::string WarpConvergence::describe() const {
  return Warps::describeLanes(mask & ~reached) + " of warp " +
         std::to_string(warp) + ", in the mask " + Warps::describeMask(mask);
}

//===----------------------------------------------------------------------===//
// Convergence
//===----------------------------------------------------------------------===//

Warps::Warps(Block &block) : block(block) {}

Warps::~Warps() = default;

void Warps::begin() {
  liveWarps = (block.size() + kWarpSize - 1) / kWarpSize;
  if (warps.size() < liveWarps)
    warps.resize(liveWarps);
  for (uint32_t i = 0; i < liveWarps; ++i) {
    warps[i].live = getLanes(i);
    warps[i].open.clear();
    reserveRegisters(i);
  }
  unused.clear();
  for (const std::unique_ptr<WarpConvergence> &convergence : convergences) {
    convergence->waiters.clear();
    unused.push_back(convergence.get());
  }
}

void Warps::reserveRegisters(uint32_t number) {
  constexpr size_t alignment = KVCacheRegisterBytes;
  Warp &warp = warps[number];
  size_t bytes = block.getGrid().module->numRegisters * KVCacheRegisterBytes;
  if (bytes > warp.registerBytes) {
    warp.registers.reset(
        static_cast<char *>(std::aligned_alloc(alignment, bytes)));
    warp.registerBytes = warp.registers ? bytes : 0;
    if (!warp.registers)
      throw std::bad_alloc();
  }
  uint32_t first = number * kWarpSize;
  uint32_t end = std::min(first + kWarpSize, block.size());
  for (uint32_t index = first; index < end; ++index)
    block.getThread(index).registers = warp.registers.get();
}

uint32_t Warps::getLanes(uint32_t warp) const {
  uint32_t lanes = std::min(block.size() - warp * kWarpSize, kWarpSize);
  return kAllLanes >> (kWarpSize - lanes);
}

void Warps::failToConverge(const Thread &thread, const KVCacheSite *site,
                           uint32_t mask, const WarpConvergence &other) const {
  std::string text = "has the mask " + describeMask(mask) + ", while " +
                     describeLanes(other.reached) + " of warp " +
                     std::to_string(other.warp);
  text += __builtin_popcount(other.reached) == 1 ? " waits" : " wait";
  if (other.site != site)
    text +=
        std::string(" in ") + other.site->op + " at " + other.site->location;
  block.fail(thread, site, text + " with the mask " + describeMask(other.mask));
}

/// The convergence that the lane belongs to, if it is open. Fails if another
/// one can't end any more, or is for the same instruction with another mask.
WarpConvergence *Warps::find(Thread &thread, const KVCacheSite *site,
                             uint32_t mask, WarpWork work, WarpRule rule) {
  for (WarpConvergence *other : warps[thread.warp].open) {
    bool isSame = other->work == work &&
                  (other->site == site || rule == WarpRule::AnySite);
    if (isSame && other->mask == mask)
      return other;
    // Each waits for a lane that is at the other.
    bool isStuck = other->mask >> thread.lane & 1 && other->reached & mask;
    if (isStuck || (isSame && other->site == site && other->mask & mask))
      failToConverge(thread, site, mask, *other);
  }
  return nullptr;
}

WarpConvergence &Warps::open(uint32_t warp, const KVCacheSite *site,
                             uint32_t mask, WarpWork work, WarpRule rule) {
  if (unused.empty()) {
    convergences.push_back(std::make_unique<WarpConvergence>());
    unused.push_back(convergences.back().get());
  }
  WarpConvergence &convergence = *unused.back();
  unused.pop_back();
  convergence.warp = warp;
  convergence.site = site;
  convergence.work = work;
  convergence.rule = rule;
  convergence.mask = mask;
  convergence.reached = 0;
  warps[warp].open.push_back(&convergence);
  return convergence;
}

bool Warps::isComplete(const WarpConvergence &convergence) const {
  return (convergence.mask & warps[convergence.warp].live &
          ~convergence.reached) == 0;
}

void Warps::complete(WarpConvergence &convergence) {
  if (convergence.rule == WarpRule::AllLanes &&
      convergence.reached != kAllLanes)
    block.fail(*convergence.lanes[__builtin_ctz(convergence.reached)]->thread,
               convergence.site,
               "requires all lanes of its warp, but " +
                   describeLanes(~convergence.reached) + " of warp " +
                   std::to_string(convergence.warp) +
                   " have ended or are not in the block");
  std::vector<WarpConvergence *> &open = warps[convergence.warp].open;
  open.erase(std::find(open.begin(), open.end(), &convergence));
  convergence.work(block, convergence);
  convergence.forEach<WarpLane>(
      [](uint32_t, WarpLane &lane) { lane.isDone = true; });
  block.wake(convergence);
  unused.push_back(&convergence);
}

void Warps::converge(Thread &thread, const KVCacheSite *site, uint32_t mask,
                     WarpWork work, WarpLane &lane, WarpRule rule) {
  if (!(mask >> thread.lane & 1))
    block.fail(thread, site,
               "is lane " + std::to_string(thread.lane) +
                   " of its warp, which is not in its mask " +
                   describeMask(mask));
  lane.thread = &thread;
  WarpConvergence *convergence = find(thread, site, mask, work, rule);
  if (!convergence)
    convergence = &open(thread.warp, site, mask, work, rule);
  convergence->lanes[thread.lane] = &lane;
  convergence->reached |= 1u << thread.lane;
  if (isComplete(*convergence))
    return complete(*convergence);
  do
    block.wait(thread, site, *convergence);
  while (!lane.isDone);
}

void Warps::noteExit(Thread &thread) {
  Warp &warp = warps[thread.warp];
  warp.live &= ~(1u << thread.lane);
  if (warp.live == 0)
    --liveWarps;
  // Each that completes is no longer open.
  for (size_t i = 0; i < warp.open.size();) {
    WarpConvergence &convergence = *warp.open[i];
    if (isComplete(convergence))
      complete(convergence);
    else
      ++i;
  }
}

//===----------------------------------------------------------------------===//
// bar.warp.sync, elect.sync
//===----------------------------------------------------------------------===//

static void synchronize(Block &block, WarpConvergence &convergence) {
  std::vector<Thread *> threads;
  threads.reserve(kWarpSize);
  convergence.forEach<WarpLane>(
      [&](uint32_t, WarpLane &lane) { threads.push_back(lane.thread); });
  block.sanitizer.synchronize(threads);
}

void kvcacheEmulatorSyncWarp(KVCacheThread *self, const KVCacheSite *site,
                             uint32_t mask) {
  Thread &thread = Thread::get(self);
  WarpLane lane;
  thread.block->warps.converge(thread, site, mask, synchronize, lane,
                               WarpRule::AnySite);
}

static void elect(Block &block, WarpConvergence &convergence) {
  uint32_t leader = block.isSanitized()
                        ? kWarpSize - 1 - __builtin_clz(convergence.reached)
                        : __builtin_ctz(convergence.reached);
  convergence.get<ValueLane>(leader).result = 1;
}

uint32_t kvcacheEmulatorElect(KVCacheThread *self, const KVCacheSite *site,
                              uint32_t mask) {
  Thread &thread = Thread::get(self);
  ValueLane lane;
  thread.block->warps.converge(thread, site, mask, elect, lane);
  return lane.result;
}
