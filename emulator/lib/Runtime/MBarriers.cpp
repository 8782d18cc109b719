//===- MBarriers.cpp - mbarriers of a block -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MBarriers.h"
#include "Grid.h"
#include "MBarrier.h"
#include "kvcache/Emulator/Synchronization.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

/// PTX ISA, "Size and alignment of mbarrier object".
static constexpr uint32_t kBarrierBytes = 8;

MBarriers::MBarriers(Block &block) : block(block) {}

MBarriers::~MBarriers() = default;

void MBarriers::begin() {
  for (MBarrier *barrier : used)
    barrier->reset();
  used.clear();
}

void MBarriers::end() {
  for (const MBarrier *barrier : used)
    barrier->checkEnd();
}

//===----------------------------------------------------------------------===//
// Barriers by their addresses
//===----------------------------------------------------------------------===//

MBarrier &MBarriers::at(const Thread &thread, const KVCacheSite *site,
                        const void *pointer) {
  uint32_t offset = block.getSharedOffset(thread, site, pointer, kBarrierBytes);
  block.checkAlignment(thread, site, pointer, kBarrierBytes);
  size_t index = offset % Cluster::kSpanBytes / kBarrierBytes;
  if (index >= barriers.size())
    barriers.resize(index + 1);
  if (!barriers[index])
    barriers[index] = std::make_unique<MBarrier>(block, offset);
  return *barriers[index];
}

MBarrier &MBarriers::get(const Thread &thread, const KVCacheSite *site,
                         const void *pointer) {
  MBarrier &barrier = at(thread, site, pointer);
  switch (barrier.getState()) {
  case MBarrier::State::Valid:
    break;
  case MBarrier::State::Unused:
    block.fail(thread, site,
               "uses " + barrier.getName() + ", which is not initialized");
  case MBarrier::State::Invalidated:
    block.fail(thread, site,
               "uses " + barrier.getName() + ", which has been invalidated");
  }
  barrier.noteUse(thread, site);
  return barrier;
}

MBarrier &MBarriers::getForCopy(const Thread &thread, const KVCacheSite *site,
                                const void *pointer) {
  MBarrier &barrier = get(thread, site, pointer);
  bool isFenced = block.cluster.initFences.isFenced(*barrier.initThread,
                                                    barrier.initTime, thread);
  if (!isFenced && block.isSanitized())
    block.fail(thread, site,
               "issues a copy to " + barrier.getName() +
                   ", which has been initialized at " +
                   barrier.initSite->location +
                   " without a fence after it (fence.mbarrier_init)");
  return barrier;
}

void MBarriers::init(Thread &thread, const KVCacheSite *site,
                     const void *pointer, int64_t count) {
  MBarrier &barrier = at(thread, site, pointer);
  if (barrier.getState() == MBarrier::State::Unused)
    used.push_back(&barrier);
  barrier.init(thread, site, count);
  barrier.initTime = block.cluster.initFences.noteInit();
}

void MBarriers::fenceInits(const Thread &thread) {
  uint32_t place = block.cluster.lifetime.addPlace(thread);
  for (MBarrier *barrier : used)
    if (barrier->initThread == &thread && !barrier->initPlace)
      barrier->initPlace = place;
}

void MBarriers::invalidate(Thread &thread, const KVCacheSite *site,
                           const void *pointer) {
  get(thread, site, pointer).invalidate(thread, site);
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

void kvcacheEmulatorMBarrierInit(KVCacheThread *self, const KVCacheSite *site,
                                 const void *barrier, int32_t count) {
  Thread &thread = Thread::get(self);
  thread.block->mbarriers.init(thread, site, barrier, count);
}

void kvcacheEmulatorMBarrierInval(KVCacheThread *self, const KVCacheSite *site,
                                  const void *barrier) {
  Thread &thread = Thread::get(self);
  thread.block->mbarriers.invalidate(thread, site, barrier);
}

/// The mbarrier at an address of the thread's block, or of another one of its
/// cluster.
static MBarrier &getOfCluster(Thread &thread, const KVCacheSite *site,
                              const void *pointer) {
  Block &owner = thread.block->getOwner(thread, site, pointer);
  MBarrier &barrier = owner.mbarriers.get(thread, site, pointer);
  owner.cluster.lifetime.note(thread, site, owner);
  return barrier;
}

/// A state is the number of the phase, and below it the place of the barrier.
static constexpr int kPhaseShift = 32;

int64_t kvcacheEmulatorMBarrierArrive(KVCacheThread *self,
                                      const KVCacheSite *site,
                                      const void *pointer, int32_t count,
                                      int32_t bytes, uint32_t flags) {
  Thread &thread = Thread::get(self);
  MBarrier &barrier = getOfCluster(thread, site, pointer);
  int64_t phase = barrier.getPhase();
  if (bytes != 0)
    barrier.expect(thread, site, bytes);
  barrier.arrive(thread, site, count, flags);
  int64_t offset = static_cast<const char *>(pointer) - thread.shared;
  return phase << kPhaseShift | offset;
}

void kvcacheEmulatorMBarrierExpectTx(KVCacheThread *self,
                                     const KVCacheSite *site,
                                     const void *barrier, int32_t bytes) {
  Thread &thread = Thread::get(self);
  getOfCluster(thread, site, barrier).expect(thread, site, bytes);
}

void kvcacheEmulatorMBarrierCompleteTx(KVCacheThread *self,
                                       const KVCacheSite *site,
                                       const void *barrier, int32_t bytes) {
  Thread &thread = Thread::get(self);
  getOfCluster(thread, site, barrier).complete(thread, site, bytes);
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

static bool testState(Thread &thread, const KVCacheSite *site,
                      const void *pointer, int64_t state, uint32_t flags) {
  Block &block = *thread.block;
  MBarrier &barrier = block.mbarriers.get(thread, site, pointer);
  int64_t offset = static_cast<const char *>(pointer) - thread.shared;
  int64_t phase = state >> kPhaseShift;
  constexpr int64_t below = (int64_t{1} << kPhaseShift) - 1;
  if ((state & below) != offset || phase < 0 || phase > barrier.getPhase())
    block.fail(thread, site,
               "waits for " + barrier.getName() +
                   " with a state that no arrival at it has returned");
  return barrier.wait(thread, site, phase, /*isTest=*/true, flags);
}

static bool waitForParity(Thread &thread, const KVCacheSite *site,
                          const void *pointer, uint32_t parity, bool isTest,
                          uint32_t flags) {
  Block &block = *thread.block;
  MBarrier &barrier = block.mbarriers.get(thread, site, pointer);
  if (parity > 1)
    block.fail(thread, site,
               "expects a parity of 0 or 1, got " + std::to_string(parity));
  return barrier.wait(thread, site, barrier.getPhaseOf(parity), isTest, flags);
}

int32_t kvcacheEmulatorMBarrierTestState(KVCacheThread *self,
                                         const KVCacheSite *site,
                                         const void *barrier, int64_t state,
                                         uint32_t flags) {
  return testState(Thread::get(self), site, barrier, state, flags);
}

int32_t kvcacheEmulatorMBarrierTestParity(KVCacheThread *self,
                                          const KVCacheSite *site,
                                          const void *barrier, int32_t parity,
                                          uint32_t flags) {
  return waitForParity(Thread::get(self), site, barrier, parity,
                       /*isTest=*/true, flags);
}

/// The op has no scope. PTX's default is the block, which kernels like those of
/// CUTLASS take for arrivals of other blocks as well.
void kvcacheEmulatorMBarrierWaitParity(KVCacheThread *self,
                                       const KVCacheSite *site,
                                       const void *barrier, int32_t parity) {
  waitForParity(Thread::get(self), site, barrier, parity, /*isTest=*/false,
                KVCacheMBarrierCluster);
}
