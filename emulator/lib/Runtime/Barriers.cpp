//===- Barriers.cpp - Barriers of a block ---------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Barriers.h"
#include "WarpConvergence.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

/// PTX ISA, "bar": the barriers of a block are numbered from 0.
static constexpr uint32_t kNumBarriers = 16;

/// A barrier, in the phase that ends when it completes.
struct Barriers::Barrier : Waitable {
  std::string describe() const override;

  struct Warp {
    /// The lanes that wait, and where they do.
    uint32_t waiting = 0;
    const KVCacheSite *site = nullptr;
    bool hasArrived = false;
  };

  const Block *block = nullptr;
  uint32_t id = 0;
  bool isOpen = false;
  /// The arrival that began the phase; its thread may have ended since.
  BarrierThread first;
  /// Whether any thread named no number: then the live ones are it.
  bool isForAll = false;
  uint32_t numWarps = 0;
  std::vector<Warp> warps;
  std::vector<BarrierThread *> waiting;
  /// The clocks of threads that arrived without waiting.
  ReleaseClock clocks;
  uint32_t numArrivals = 0;
};

static std::string describeNumber(int64_t numThreads) {
  return numThreads < 0 ? "all threads"
                        : std::to_string(numThreads) + " threads";
}

std::string Barriers::Barrier::describe() const {
  uint64_t count = waiting.size() + uint64_t{numArrivals} * kWarpSize;
  return "barrier " + std::to_string(id) + ", which has " +
         std::to_string(count) + " of " +
         describeNumber(isForAll ? block->numLive() : first.numThreads);
}

Barriers::Barriers(Block &block)
    : block(block), barriers(std::make_unique<Barrier[]>(kNumBarriers)) {
  for (uint32_t id = 0; id < kNumBarriers; ++id) {
    barriers[id].block = &block;
    barriers[id].id = id;
  }
}

Barriers::~Barriers() = default;

uint32_t Barriers::numWarps() const {
  return (block.size() + kWarpSize - 1) / kWarpSize;
}

void Barriers::begin() {
  numOpen = 0;
  for (uint32_t id = 0; id < kNumBarriers; ++id) {
    barriers[id].isOpen = false;
    barriers[id].waiters.clear();
  }
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

void Barriers::checkOperands(const BarrierThread &arrival) const {
  auto fail = [&](const std::string &message) {
    block.fail(*arrival.thread, arrival.site, message);
  };
  if (arrival.id >= kNumBarriers)
    fail("expects the number of a barrier below 16, got " +
         std::to_string(arrival.id));
  if (arrival.numThreads == 0 || arrival.numThreads % kWarpSize > 0)
    fail("expects the number of threads to be a positive multiple of 32, got " +
         std::to_string(arrival.numThreads));
}

void Barriers::checkPhase(const Barrier &barrier,
                          const BarrierThread &arrival) const {
  const BarrierThread &first = barrier.first;
  auto getNumber = [&](const BarrierThread &one) {
    return one.numThreads < 0 ? int64_t{numWarps()} * kWarpSize
                              : one.numThreads;
  };
  auto fail = [&](const std::string &message) {
    block.fail(*arrival.thread, arrival.site,
               "arrives at barrier " + std::to_string(arrival.id) + message +
                   " at " + first.site->location);
  };
  if (getNumber(first) != getNumber(arrival))
    fail(" for " + describeNumber(arrival.numThreads) + ", but " +
         Block::describe(*first.thread) + " has arrived for " +
         describeNumber(first.numThreads));
  // PTX ISA, "bar": bar.red must not be mixed with bar.sync and bar.arrive.
  auto describeKind = [](const BarrierThread &one) {
    return one.reduction == KVCacheBarrierNone ? "no reduction" : "a reduction";
  };
  if ((first.reduction == KVCacheBarrierNone) !=
      (arrival.reduction == KVCacheBarrierNone))
    fail(std::string(" for ") + describeKind(arrival) + ", but " +
         Block::describe(*first.thread) + " has arrived for " +
         describeKind(first));
  if (first.reduction != arrival.reduction)
    fail(" for a reduction, but " + Block::describe(*first.thread) +
         " has arrived for another one");
}

Barriers::Barrier &Barriers::open(const BarrierThread &arrival) {
  checkOperands(arrival);
  Barrier &barrier = barriers[arrival.id];
  if (barrier.isOpen) {
    checkPhase(barrier, arrival);
  } else {
    ++numOpen;
    barrier.isOpen = true;
    barrier.first = arrival;
    barrier.isForAll = false;
    barrier.numWarps = barrier.numArrivals = 0;
    barrier.warps.assign(numWarps(), {});
    barrier.waiting.clear();
    barrier.clocks.clear();
  }
  barrier.isForAll |= arrival.numThreads < 0;
  return barrier;
}

void Barriers::synchronize(BarrierThread &arrival) {
  Thread &thread = *arrival.thread;
  Barrier &barrier = open(arrival);
  Barrier::Warp &warp = barrier.warps[thread.warp];
  if (warp.waiting && warp.site != arrival.site)
    block.fail(thread, arrival.site,
               "arrives at barrier " + std::to_string(arrival.id) +
                   ", at which " + Warps::describeLanes(warp.waiting) +
                   " of its warp arrived in another instruction, at " +
                   warp.site->location);
  warp.site = arrival.site;
  warp.waiting |= 1u << thread.lane;
  barrier.waiting.push_back(&arrival);
  if (warp.waiting == block.warps.getLive(thread.warp)) {
    checkWarp(arrival);
    noteWarp(barrier, thread.warp);
  }
  while (!arrival.isDone)
    block.wait(thread, arrival.site, barrier);
}

void Barriers::arrive(const BarrierThread &arrival,
                      const std::vector<Thread *> &threads) {
  Barrier &barrier = open(arrival);
  checkWarp(arrival);
  ++barrier.numArrivals;
  for (Thread *thread : threads)
    block.sanitizer.release(*thread, barrier.clocks);
  noteWarp(barrier, arrival.thread->warp);
}

/// PTX ISA, "barrier": all threads of a warp must execute one that is .aligned,
/// as those of NVVM are.
void Barriers::checkWarp(const BarrierThread &one) const {
  uint32_t warp = one.thread->warp;
  uint32_t ended = block.warps.getLanes(warp) & ~block.warps.getLive(warp);
  if (ended)
    block.fail(*one.thread, one.site,
               "arrives at barrier " + std::to_string(one.id) +
                   ", which requires all threads of a warp, but " +
                   Warps::describeLanes(ended) + " of warp " +
                   std::to_string(warp) +
                   (ended & (ended - 1) ? " have ended" : " has ended"));
}

void Barriers::noteWarp(Barrier &barrier, uint32_t warp) {
  barrier.warps[warp].hasArrived = true;
  ++barrier.numWarps;
  block.noteProgress();
  if (isComplete(barrier))
    complete(barrier);
}

void Barriers::noteExit(Thread &thread) {
  if (numOpen == 0)
    return;
  uint32_t live = block.warps.getLive(thread.warp);
  for (uint32_t id = 0; id < kNumBarriers; ++id) {
    Barrier &barrier = barriers[id];
    if (!barrier.isOpen)
      continue;
    if (live && barrier.warps[thread.warp].waiting == live)
      checkWarp(**std::find_if(barrier.waiting.begin(), barrier.waiting.end(),
                               [&](const BarrierThread *one) {
                                 return one->thread->warp == thread.warp;
                               }));
    else if (isComplete(barrier))
      complete(barrier);
  }
}

//===----------------------------------------------------------------------===//
// The end of a phase
//===----------------------------------------------------------------------===//

bool Barriers::isComplete(const Barrier &barrier) const {
  if (!barrier.isForAll)
    return int64_t{barrier.numWarps} * kWarpSize >= barrier.first.numThreads;
  for (uint32_t warp = 0; warp < barrier.warps.size(); ++warp)
    if (block.warps.getLive(warp) && !barrier.warps[warp].hasArrived)
      return false;
  return true;
}

static uint32_t reduce(uint32_t reduction,
                       const std::vector<BarrierThread *> &threads) {
  uint32_t count = 0;
  for (const BarrierThread *one : threads)
    count += one->predicate;
  switch (reduction) {
  case KVCacheBarrierPopc:
    return count;
  case KVCacheBarrierAnd:
    return count == threads.size();
  case KVCacheBarrierOr:
    return count > 0;
  default:
    return 0;
  }
}

void Barriers::complete(Barrier &barrier) {
  uint32_t result = reduce(barrier.first.reduction, barrier.waiting);
  std::vector<Thread *> threads;
  threads.reserve(barrier.waiting.size());
  for (BarrierThread *one : barrier.waiting) {
    one->result = result;
    one->isDone = true;
    threads.push_back(one->thread);
    if (barrier.numArrivals > 0)
      block.sanitizer.acquire(*one->thread, barrier.clocks);
  }
  block.sanitizer.synchronize(threads);
  barrier.isOpen = false;
  --numOpen;
  block.wake(barrier);
}

//===----------------------------------------------------------------------===//
// Functions of compiled code
//===----------------------------------------------------------------------===//

uint32_t kvcacheEmulatorBarrier(KVCacheThread *self, const KVCacheSite *site,
                                uint32_t id, int64_t numThreads,
                                uint32_t reduction, uint32_t predicate) {
  Thread &thread = Thread::get(self);
  BarrierThread arrival;
  arrival.thread = &thread;
  arrival.site = site;
  arrival.id = id;
  arrival.numThreads = numThreads;
  arrival.reduction = reduction;
  arrival.predicate = predicate != 0;
  thread.block->barriers.synchronize(arrival);
  return arrival.result;
}

namespace {
struct ArrivingLane : WarpLane {
  BarrierThread arrival;
};
} // namespace

static void arrive(Block &block, WarpConvergence &convergence) {
  const BarrierThread &first =
      convergence.get<ArrivingLane>(__builtin_ctz(convergence.reached)).arrival;
  std::vector<Thread *> threads;
  convergence.forEach<ArrivingLane>([&](uint32_t, ArrivingLane &lane) {
    const BarrierThread &arrival = lane.arrival;
    if (arrival.id != first.id || arrival.numThreads != first.numThreads)
      block.fail(*arrival.thread, arrival.site,
                 "arrives at barrier " + std::to_string(arrival.id) + " for " +
                     describeNumber(arrival.numThreads) + ", but " +
                     Block::describe(*first.thread) +
                     " of its warp at barrier " + std::to_string(first.id) +
                     " for " + describeNumber(first.numThreads));
    threads.push_back(arrival.thread);
  });
  block.barriers.arrive(first, threads);
}

void kvcacheEmulatorBarrierArrive(KVCacheThread *self, const KVCacheSite *site,
                                  uint32_t id, uint32_t numThreads) {
  Thread &thread = Thread::get(self);
  ArrivingLane lane;
  lane.arrival.thread = &thread;
  lane.arrival.site = site;
  lane.arrival.id = id;
  lane.arrival.numThreads = numThreads;
  // Lanes go on together: none arrives again before the others have arrived.
  thread.block->warps.converge(thread, site, kAllLanes, arrive, lane);
}
