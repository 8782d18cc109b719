//===- ClusterBarrier.cpp - The barrier of a cluster, and its addresses ---===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClusterBarrier.h"
#include "WarpConvergence.h"
#include "kvcache/Emulator/Clusters.h"

using namespace mlir::kvcache::emulator;

void ClusterBarrier::begin() {
  phase = 0;
  numArrived = 0;
  // Most launches never use it.
  if (arrivals.empty())
    return;
  waiters.clear();
  arrivals.clear();
  gathered.clear();
  completed.clear();
  gatheredPlaces = completedPlaces = {};
}

std::string ClusterBarrier::describe() const {
  return "the barrier of the cluster, which has " + std::to_string(numArrived) +
         " of " + std::to_string(cluster.numLive()) + " arrivals";
}

void ClusterBarrier::arrive(Thread &thread, const KVCacheSite *site,
                            bool isRelaxed) {
  arrivals.resize(cluster.size());
  Arrival &arrival = arrivals[thread.index];
  if (arrival.site)
    cluster.fail(thread, site,
                 "arrives at the barrier of the cluster again without having "
                 "waited for its arrival at " +
                     std::string(arrival.site->location));
  arrival = {site, phase};
  ++numArrived;
  if (isRelaxed)
    cluster.sanitizer.releaseFenced(thread, gathered);
  else
    cluster.sanitizer.release(thread, gathered);
  cluster.lifetime.release(thread, gatheredPlaces);
  update();
}

void ClusterBarrier::wait(Thread &thread, const KVCacheSite *site) {
  const KVCacheSite *arrivedAt =
      arrivals.empty() ? nullptr : arrivals[thread.index].site;
  if (!arrivedAt)
    cluster.fail(thread, site,
                 "waits for the barrier of the cluster without having arrived "
                 "at it (cluster.arrive)");
  // No other phase completes before the thread has arrived again.
  while (phase == arrivals[thread.index].phase)
    cluster.wait(thread, site, *this);
  arrivals[thread.index].site = nullptr;
  cluster.sanitizer.acquire(thread, completed);
  cluster.lifetime.acquire(thread, completedPlaces);
}

void ClusterBarrier::forget(const Thread &thread) {
  const Arrival &arrival = arrivals[thread.index];
  if (arrival.site && arrival.phase == phase)
    --numArrived;
  update();
}

void ClusterBarrier::update() {
  cluster.noteProgress();
  if (numArrived == 0 || numArrived < cluster.numLive())
    return;
  ++phase;
  numArrived = 0;
  completed = gathered;
  gathered.clear();
  completedPlaces = gatheredPlaces;
  gatheredPlaces = {};
  cluster.wake(*this);
}

//===----------------------------------------------------------------------===//
// Functions of compiled code
//===----------------------------------------------------------------------===//

/// PTX ISA, "barrier.cluster": all threads of a warp must execute one that is
/// .aligned.
static void checkAligned(Block &block, WarpConvergence &convergence) {
  uint32_t ended = block.warps.getLanes(convergence.warp) &
                   ~block.warps.getLive(convergence.warp);
  if (ended)
    block.fail(
        *convergence.get<WarpLane>(__builtin_ctz(convergence.reached)).thread,
        convergence.site,
        "requires all threads of its warp, but " + Warps::describeLanes(ended) +
            " of warp " + std::to_string(convergence.warp) +
            (ended & (ended - 1) ? " have ended" : " has ended"));
}

static void convergeWarp(Thread &thread, const KVCacheSite *site,
                         uint32_t flags) {
  WarpLane lane;
  if (flags & KVCacheClusterAligned)
    thread.block->warps.converge(thread, site, kAllLanes, checkAligned, lane);
}

void kvcacheEmulatorClusterArrive(KVCacheThread *self, const KVCacheSite *site,
                                  uint32_t flags) {
  Thread &thread = Thread::get(self);
  convergeWarp(thread, site, flags);
  thread.block->cluster.barrier.arrive(thread, site,
                                       flags & KVCacheClusterRelaxed);
}

void kvcacheEmulatorClusterWait(KVCacheThread *self, const KVCacheSite *site,
                                uint32_t flags) {
  Thread &thread = Thread::get(self);
  convergeWarp(thread, site, flags);
  thread.block->cluster.barrier.wait(thread, site);
}

/// The block of the cluster whose shared memory has the address.
static Block &getBlock(Thread &thread, const KVCacheSite *site,
                       const void *pointer) {
  Block *owner = thread.block->cluster.findBlock(pointer);
  if (!owner)
    thread.block->fail(thread, site,
                       "expects an address in shared memory of the cluster");
  return *owner;
}

void *kvcacheEmulatorMapShared(KVCacheThread *self, const KVCacheSite *site,
                               const void *pointer, int32_t rank) {
  Thread &thread = Thread::get(self);
  Cluster &cluster = thread.block->cluster;
  const Block &owner = getBlock(thread, site, pointer);
  if (static_cast<uint32_t>(rank) >= cluster.numBlocks())
    cluster.fail(thread, site,
                 "expects the rank of a block of the cluster, below " +
                     std::to_string(cluster.numBlocks()) + ", got " +
                     std::to_string(rank));
  return cluster.getBlock(rank).shared +
         (static_cast<const char *>(pointer) - owner.shared);
}

int32_t kvcacheEmulatorGetRank(KVCacheThread *self, const KVCacheSite *site,
                               const void *pointer) {
  return getBlock(Thread::get(self), site, pointer).rank;
}
