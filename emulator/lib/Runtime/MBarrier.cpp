//===- MBarrier.cpp - One mbarrier ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MBarrier.h"
#include "Grid.h"
#include "kvcache/Emulator/Synchronization.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string MBarrier::getName() const {
  return "the mbarrier at " + block.describeShared(offset);
}

std::string MBarrier::countArrivals() const {
  return std::to_string(arrived) + " of " + std::to_string(arrived + pending) +
         " arrivals";
}

std::string MBarrier::countBytes() const {
  return std::to_string(completedBytes) + " of " +
         std::to_string(expectedBytes) + " bytes";
}

std::string MBarrier::describe() const {
  return getName() + ", in phase " + std::to_string(phase) + ", which has " +
         countArrivals() + " and " + countBytes();
}

//===----------------------------------------------------------------------===//
// From init to inval
//===----------------------------------------------------------------------===//

void MBarrier::reset() {
  state = State::Unused;
  waiters.clear();
  copies.clear();
  gathered.clear();
  completed.clear();
  gatheredOfBlock.clear();
  completedOfBlock.clear();
  gatheredPlaces = completedPlaces = {};
  hasGivenUp.clear();
  numWaiting = 0;
  initPlace = 0;
}

void MBarrier::init(Thread &thread, const KVCacheSite *site, int64_t count) {
  if (state == State::Valid)
    block.fail(thread, site,
               "initializes " + getName() + ", which has been initialized at " +
                   initSite->location + " and not been invalidated since");
  if (count < 1 || count > kMaxCount)
    block.fail(thread, site,
               "expects a count from 1 to 2^20 - 1, got " +
                   std::to_string(count));
  reset();
  state = State::Valid;
  phase = arrived = expectedBytes = completedBytes = 0;
  expected = pending = count;
  initThread = &thread;
  initSite = site;
  block.sanitizer.placeBarrier(thread, site, offset);
}

void MBarrier::invalidate(Thread &thread, const KVCacheSite *site) {
  if (numWaiting > 0)
    block.fail(
        thread, site,
        "invalidates " + getName() + " while " + std::to_string(numWaiting) +
            (numWaiting == 1 ? " thread waits" : " threads wait") + " for it");
  if (!copies.empty())
    block.fail(thread, site,
               "invalidates " + getName() + " while a copy issued at " +
                   copies.front().site->location + " is in flight");
  state = State::Invalidated;
  block.sanitizer.removeBarrier(thread, site, offset);
}

void MBarrier::noteUse(const Thread &thread, const KVCacheSite *site) const {
  bool isAfterFence = initPlace && block.cluster.lifetime.isAfter(
                                       thread, *initThread, initPlace);
  if (!isAfterFence)
    block.sanitizer.useBarrier(thread, site, offset);
}

void MBarrier::checkEnd() const {
  if (state != State::Valid)
    return;
  if (!copies.empty())
    block.fail(*copies.front().thread, copies.front().site,
               "has a copy to " + getName() +
                   " in flight when the block ends: no thread waits for it");
  if (expectedBytes != completedBytes)
    block.fail(*initThread, initSite,
               "initializes " + getName() + ", which has received " +
                   countBytes() + " in phase " + std::to_string(phase) +
                   " when the block ends");
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

/// `count` pending arrivals come.
void MBarrier::take(Thread &thread, const KVCacheSite *site, int64_t count) {
  if (count < 1 || count > kMaxCount)
    block.fail(thread, site,
               "expects a count from 1 to 2^20 - 1, got " +
                   std::to_string(count));
  if (count > pending)
    block.fail(
        thread, site,
        "arrives " + std::to_string(count) + (count == 1 ? " time" : " times") +
            " at " + getName() + ", in phase " + std::to_string(phase) +
            ", which waits for " + std::to_string(pending) + " more of " +
            std::to_string(arrived + pending) + " arrivals");
  pending -= count;
  arrived += count;
}

void MBarrier::arrive(Thread &thread, const KVCacheSite *site, int64_t count,
                      uint32_t flags) {
  take(thread, site, count);
  if (flags & KVCacheMBarrierDrop) {
    if (count > expected)
      block.fail(thread, site,
                 "drops " + std::to_string(count) + " arrivals of " +
                     getName() + ", whose phases wait for " +
                     std::to_string(expected));
    expected -= count;
  }
  if ((flags & KVCacheMBarrierNoComplete) && pending == 0)
    block.fail(thread, site,
               "arrives last in phase " + std::to_string(phase) + " of " +
                   getName() + ", and must not complete it");
  release(thread, flags);
  update();
}

/// PTX ISA, "Release and Acquire Patterns": threads of different blocks need
/// the scope of the cluster.
void MBarrier::release(Thread &thread, uint32_t flags) {
  notePlaces(thread);
  if (flags & KVCacheMBarrierRelaxed)
    return;
  bool isOwn = thread.block == &block;
  if (isOwn || (flags & KVCacheMBarrierCluster))
    block.sanitizer.release(thread, gathered);
  if (isOwn && block.cluster.numBlocks() > 1)
    block.sanitizer.release(thread, gatheredOfBlock);
}

/// Only threads of the barrier's own block wait. Copies are complete for each
/// scope.
void MBarrier::acquire(Thread &thread, uint32_t flags) {
  block.cluster.lifetime.acquire(thread, completedPlaces);
  if (flags & KVCacheMBarrierRelaxed)
    return;
  if (block.cluster.numBlocks() == 1 || (flags & KVCacheMBarrierCluster))
    return block.sanitizer.acquire(thread, completed);
  block.sanitizer.acquire(thread, completedOfBlock);
  block.sanitizer.acquireCopies(thread, completed);
}

void MBarrier::addArrival(Thread &thread, const KVCacheSite *site) {
  if (pending == kMaxCount)
    block.fail(thread, site,
               "adds an arrival to " + getName() + ", which waits for " +
                   std::to_string(pending) + ", the most there can be");
  ++pending;
}

void MBarrier::arriveByCopies(Thread &thread, const KVCacheSite *site) {
  take(thread, site, 1);
  update();
}

void MBarrier::checkBytes(const Thread &thread, const KVCacheSite *site,
                          int64_t bytes) const {
  if (bytes < 0 || bytes > kMaxCount)
    block.fail(thread, site,
               "expects a number of bytes from 0 to 2^20 - 1, got " +
                   std::to_string(bytes));
}

void MBarrier::expect(Thread &thread, const KVCacheSite *site, int64_t bytes) {
  checkBytes(thread, site, bytes);
  notePlaces(thread);
  expectedBytes += bytes;
  if (expectedBytes - completedBytes > kMaxCount)
    block.fail(thread, site,
               "makes " + getName() + " wait for " +
                   std::to_string(expectedBytes - completedBytes) +
                   " bytes, which can be 2^20 - 1 at most");
  update();
}

void MBarrier::complete(Thread &thread, const KVCacheSite *site,
                        int64_t bytes) {
  checkBytes(thread, site, bytes);
  notePlaces(thread);
  completedBytes += bytes;
  if (completedBytes - expectedBytes > kMaxCount)
    block.fail(thread, site,
               "brings " + getName() + " to " + countBytes() +
                   ", more than 2^20 - 1 too many");
  update();
}

/// Counts have changed.
void MBarrier::update() {
  block.noteProgress();
  if (pending == 0 && expectedBytes == completedBytes)
    completePhase();
}

void MBarrier::completePhase() {
  for (const Copy &copy : copies)
    if (copy.bytes > 0)
      block.fail(*copy.thread, copy.site,
                 "has a copy of " + std::to_string(copy.bytes) +
                     " bytes in flight when phase " + std::to_string(phase) +
                     " of " + getName() + " completes, which expected " +
                     std::to_string(expectedBytes) + " bytes");
  block.meter.completePhase(block.getGrid().sharedVariables.getOffset(
                                offset & (Cluster::kSpanBytes - 1)),
                            expectedBytes);
  ++phase;
  pending = expected;
  arrived = expectedBytes = completedBytes = 0;
  completed = gathered;
  gathered.clear();
  completedOfBlock = gatheredOfBlock;
  gatheredOfBlock.clear();
  completedPlaces = gatheredPlaces;
  gatheredPlaces = {};
  hasGivenUp.clear();
  block.wake(*this);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void MBarrier::beginCopy(Thread &thread, const KVCacheSite *site,
                         int64_t bytes) {
  copies.push_back({&thread, site, bytes});
}

void MBarrier::endCopy(Thread &thread, const KVCacheSite *site, int64_t bytes) {
  auto found = std::find_if(copies.begin(), copies.end(), [&](const Copy &c) {
    return c.thread == &thread && c.site == site && c.bytes == bytes;
  });
  if (found != copies.end())
    copies.erase(found);
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// PTX ISA, "mbarrier.test_wait, mbarrier.try_wait": either may return false.
/// The first test of each thread does, or those that the seed chooses, so that
/// a kernel that uses it as a wait fails.
bool MBarrier::givesUp(const Thread &thread) {
  if (!block.isSanitized())
    return false;
  hasGivenUp.resize(block.cluster.size());
  bool isFirst = !hasGivenUp[thread.index];
  hasGivenUp[thread.index] = true;
  return block.getGrid().seed ? block.getRandom()() % 2 : isFirst;
}

bool MBarrier::wait(Thread &thread, const KVCacheSite *site, int64_t which,
                    bool isTest, uint32_t flags) {
  if (isTest && !hasCompleted(which) && givesUp(thread))
    return false;
  ++numWaiting;
  bool goesOn = true;
  while (!hasCompleted(which) && goesOn) {
    if (isTest)
      goesOn = block.poll(thread, site, *this);
    else
      block.wait(thread, site, *this);
  }
  --numWaiting;
  if (!hasCompleted(which))
    return false;
  // PTX ISA, "Phase of the mbarrier object": only the present phase and the one
  // before can be waited for.
  if (phase > which + 1)
    block.fail(thread, site,
               "waits for phase " + std::to_string(which) + " of " + getName() +
                   ", which is in phase " + std::to_string(phase) +
                   ": it has missed the end of its phase");
  acquire(thread, flags);
  return true;
}
