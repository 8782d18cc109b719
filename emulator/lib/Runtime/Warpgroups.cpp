//===- Warpgroups.cpp - The state of wgmma in a block ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warpgroups.h"
#include "WarpConvergence.h"

#include <algorithm>
#include <string>

using namespace mlir::kvcache::emulator;

/// The threads of a warpgroup that have reached wgmma.mma_async.
struct Warpgroups::Convergence : Waitable {
  std::string describe() const override {
    return "the other threads of warps " + std::to_string(number * kNumWarps) +
           " to " + std::to_string(number * kNumWarps + kNumWarps - 1) +
           ", of which " + std::to_string(threads.size()) +
           " of 128 have arrived";
  }

  uint32_t number = 0;
  const KVCacheSite *site = nullptr;
  std::vector<WgmmaThread *> threads;
};

Warpgroups::Warpgroups(Block &block) : block(block) {}

Warpgroups::~Warpgroups() = default;

void Warpgroups::begin() {
  warps.clear();
  convergences.clear();
}

Warpgroups::Warp &Warpgroups::getWarp(const Thread &thread) {
  if (warps.size() <= thread.warp)
    warps.resize((block.size() + kWarpSize - 1) / kWarpSize);
  return warps[thread.warp];
}

//===----------------------------------------------------------------------===//
// wgmma.mma_async
//===----------------------------------------------------------------------===//

static std::string describeWarps(uint32_t warpgroup) {
  uint32_t first = warpgroup * Warpgroups::kNumWarps;
  return "warps " + std::to_string(first) + " to " +
         std::to_string(first + Warpgroups::kNumWarps - 1);
}

/// PTX ISA, "Warpgroup": four warps in a row, from a multiple of 4 on.
void Warpgroups::checkSize(const Thread &thread,
                           const KVCacheSite *site) const {
  uint32_t warpgroup = thread.warp / kNumWarps;
  if ((warpgroup + 1) * kNumThreads > block.size())
    block.fail(thread, site,
               "requires all 128 threads of " + describeWarps(warpgroup) +
                   ", but the block has " + std::to_string(block.size()) +
                   " threads");
}

void Warpgroups::checkThreads(const Thread &thread,
                              const KVCacheSite *site) const {
  checkSize(thread, site);
  uint32_t warpgroup = thread.warp / kNumWarps;
  for (uint32_t i = 0; i < kNumThreads; ++i) {
    const Thread &other = block.getThread(warpgroup * kNumThreads + i);
    if (other.hasEnded)
      block.fail(thread, site,
                 "requires all 128 threads of " + describeWarps(warpgroup) +
                     ", but " + Block::describe(other) + " has ended");
  }
}

void Warpgroups::noteExit(const Thread &thread) const {
  uint32_t warpgroup = thread.warp / kNumWarps;
  if (warpgroup < convergences.size() && convergences[warpgroup] &&
      !convergences[warpgroup]->threads.empty()) {
    const Convergence &convergence = *convergences[warpgroup];
    checkThreads(*convergence.threads.front()->thread, convergence.site);
  }
}

/// All threads of a warpgroup must execute the same fences, commits and waits.
void Warpgroups::checkWarps(const Convergence &convergence) const {
  const Thread &thread = *convergence.threads.front()->thread;
  uint32_t first = convergence.number * kNumWarps;
  auto check = [&](const char *op, uint32_t Warp::*count) {
    for (uint32_t i = first; i < first + kNumWarps; ++i)
      if (warps[i].*count != warps[first].*count)
        block.fail(thread, convergence.site,
                   std::string("executes it when warp ") +
                       std::to_string(first) + " has executed " + op + " " +
                       std::to_string(warps[first].*count) +
                       " times, and warp " + std::to_string(i) + " " +
                       std::to_string(warps[i].*count) +
                       " times: all threads of a warpgroup must execute it");
  };
  check("wgmma.fence", &Warp::numFences);
  check("wgmma.commit_group", &Warp::numCommits);
  check("wgmma.wait_group", &Warp::numWaits);
}

/// PTX ISA, "wgmma.fence": before the first wgmma.mma_async, and between an
/// access of a register and a wgmma.mma_async that accesses it, but for
/// accumulators of one shape.
void Warpgroups::checkAccumulators(const WgmmaThread &one,
                                   const KVCacheSite *site,
                                   const KVCacheWgmma &form) {
  const Thread &thread = *one.thread;
  Warp &warp = warps[thread.warp];
  const KVCacheWgmmaRegisters &registers = *one.registers;
  uint32_t needed = registers.numFences;
  const char *why = needed <= 1 ? "has executed no wgmma.fence before it"
                                : "has accumulators that another instruction "
                                  "has written since the last wgmma.fence";
  if (uint32_t ticket = registers.ticket) {
    Issued &before = warp.get(ticket);
    auto isSame = [&](const KVCacheWgmma &other) {
      return form.n == other.n && form.k == other.k && form.d == other.d;
    };
    if (before.takenBy)
      use(thread, site, ticket);
    if (!isSame(*before.form) && ticket > warp.numDone)
      block.fail(thread, site,
                 "has the accumulators of a wgmma of another shape, " +
                     Block::describe(before.site) + ", which are in flight");
    if (before.numFences > needed) {
      needed = before.numFences;
      why = "has accumulators that another instruction has read since the last "
            "wgmma.fence";
    }
  }
  if (warp.numFences < needed)
    block.fail(thread, site, why);
  if (!form.hasRegistersA)
    return;
  if (registers.ticketA)
    use(thread, site, registers.ticketA);
  if (warp.numFences < registers.numFencesA)
    block.fail(thread, site,
               "has registers of A that another instruction has written since "
               "the last wgmma.fence");
}

void Warpgroups::multiply(WgmmaThread &one, const KVCacheSite *site,
                          const KVCacheWgmma &form) {
  Thread &thread = *one.thread;
  uint32_t number = thread.warp / kNumWarps;
  checkThreads(thread, site);
  getWarp(thread);
  if (convergences.size() <= number)
    convergences.resize(number + 1);
  if (!convergences[number])
    convergences[number] = std::make_unique<Convergence>();
  Convergence &convergence = *convergences[number];
  if (!convergence.threads.empty() && convergence.site != site)
    block.fail(thread, site,
               "executes it while " +
                   Block::describe(*convergence.threads.front()->thread) +
                   " of its warpgroup waits in " +
                   Block::describe(convergence.site));
  if (block.isSanitized())
    checkAccumulators(one, site, form);
  convergence.number = number;
  convergence.site = site;
  convergence.threads.push_back(&one);
  if (convergence.threads.size() < kNumThreads) {
    while (!one.isDone)
      block.wait(thread, site, convergence);
    return;
  }
  checkWarps(convergence);
  std::vector<WgmmaThread *> threads(kNumThreads);
  for (WgmmaThread *other : convergence.threads)
    threads[other->thread->warp % kNumWarps * kWarpSize + other->thread->lane] =
        other;
  convergence.threads.clear();
  Sanitizer::Copy reads[kNumWarps] = {};
  emulator::multiply(block, site, form, threads, reads);
  if (block.isSanitized())
    for (uint32_t i = 0; i < kNumWarps; ++i)
      warps[number * kNumWarps + i].issued.push_back({site, &form, reads[i]});
  for (WgmmaThread *other : threads) {
    Warp &warp = warps[other->thread->warp];
    uint32_t &ticket = other->registers->ticket;
    if (block.isSanitized() && ticket > warp.numDone)
      warp.get(ticket).takenBy = site;
    ticket = warp.issued.size();
    other->isDone = true;
  }
  block.wake(convergence);
}

void Warpgroups::use(const Thread &thread, const KVCacheSite *site,
                     uint32_t ticket) {
  Warp &warp = warps[thread.warp];
  Issued &issued = warp.get(ticket);
  std::string name = "the accumulators of " + Block::describe(issued.site);
  if (issued.takenBy)
    block.fail(thread, site,
               "reads " + name + ", which " + Block::describe(issued.takenBy) +
                   " already accumulates into");
  if (ticket > warp.numDone)
    block.fail(thread, site,
               "reads " + name + ", which are in flight: " +
                   (ticket > warp.numCommitted
                        ? "no wgmma.commit_group has followed"
                        : "no wgmma.wait_group has waited for their group"));
  issued.numFences = warp.numFences + 1;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {
struct GroupLane : WarpLane {
  int64_t count = 0;
};
} // namespace

static Warpgroups::Warp &getWarp(Block &block, WarpConvergence &convergence) {
  return block.warpgroups.getWarp(*convergence.get<GroupLane>(0).thread);
}

static void fence(Block &block, WarpConvergence &convergence) {
  uint32_t count = ++getWarp(block, convergence).numFences;
  convergence.forEach<GroupLane>(
      [&](uint32_t, GroupLane &lane) { lane.thread->numWgmmaFences = count; });
}

static void commit(Block &block, WarpConvergence &convergence) {
  Warpgroups::Warp &warp = getWarp(block, convergence);
  ++warp.numCommits;
  warp.numCommitted = warp.issued.size();
  warp.groups.push_back(warp.numCommitted);
}

/// The groups but the last `count` are done, which all lanes acquire.
static void wait(Block &block, WarpConvergence &convergence) {
  Warpgroups::Warp &warp = getWarp(block, convergence);
  ++warp.numWaits;
  auto count = static_cast<uint64_t>(convergence.get<GroupLane>(0).count);
  Sanitizer &sanitizer = block.sanitizer;
  for (; warp.groups.size() > count; warp.groups.pop_front())
    for (; warp.numDone < warp.groups.front(); ++warp.numDone)
      sanitizer.complete(warp.get(warp.numDone + 1).reads, warp.clocks);
  convergence.forEach<GroupLane>([&](uint32_t, GroupLane &lane) {
    sanitizer.acquire(*lane.thread, warp.clocks);
  });
}

void Warpgroups::end() const {
  for (uint32_t i = 0; i < warps.size(); ++i) {
    const Warp &warp = warps[i];
    if (warp.numDone < warp.issued.size())
      block.fail(block.getThread(i * kWarpSize),
                 warp.get(warp.numDone + 1).site,
                 "is in flight when the block ends");
  }
}

//===----------------------------------------------------------------------===//
// Functions of compiled code
//===----------------------------------------------------------------------===//

void kvcacheEmulatorWgmma(KVCacheThread *self, const KVCacheSite *site,
                          const KVCacheWgmma *form, int64_t a, int64_t b,
                          KVCacheWgmmaRegisters *registers) {
  Thread &thread = Thread::get(self);
  WgmmaThread one;
  one.thread = &thread;
  one.a = a;
  one.b = b;
  one.registers = registers;
  thread.block->warpgroups.multiply(one, site, *form);
}

/// Without the sanitizer nothing is in flight.
static void converge(KVCacheThread *self, const KVCacheSite *site,
                     WarpWork work, int64_t count = 0) {
  Thread &thread = Thread::get(self);
  if (!thread.block->isSanitized())
    return;
  GroupLane lane;
  lane.count = count;
  thread.block->warps.converge(thread, site, kAllLanes, work, lane,
                               WarpRule::AllLanes);
}

void kvcacheEmulatorWgmmaFence(KVCacheThread *self, const KVCacheSite *site) {
  converge(self, site, fence);
}

void kvcacheEmulatorWgmmaCommit(KVCacheThread *self, const KVCacheSite *site) {
  converge(self, site, commit);
}

void kvcacheEmulatorWgmmaWait(KVCacheThread *self, const KVCacheSite *site,
                              int64_t count) {
  converge(self, site, wait, count);
}

void kvcacheEmulatorUseAccumulators(KVCacheThread *self,
                                    const KVCacheSite *site, uint32_t ticket) {
  const Thread &thread = Thread::get(self);
  if (ticket)
    thread.block->warpgroups.use(thread, site, ticket);
}
