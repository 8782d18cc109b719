//===- ClusterLifetime.cpp - Other blocks of a cluster --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClusterLifetime.h"
#include "Block.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

void ClusterLifetime::begin() {
  states.clear();
  uint32_t numBlocks = cluster.numBlocks();
  if (numBlocks == 1 || !cluster.isSanitized())
    return;
  State first;
  first.hasBegun.resize(numBlocks);
  first.accesses.resize(numBlocks);
  states.assign(cluster.size(), first);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void ClusterLifetime::release(const Thread &thread, Clocks &into) {
  if (states.empty())
    return;
  const State &state = states[thread.index];
  into.join(state.known);
  into.raise(thread.index, state.place);
}

void ClusterLifetime::acquire(const Thread &thread, const Clocks &from) {
  if (!states.empty())
    states[thread.index].known.join(from);
}

void ClusterLifetime::synchronize(const std::vector<Thread *> &threads) {
  if (states.empty())
    return;
  Clocks known;
  for (const Thread *thread : threads)
    release(*thread, known);
  for (const Thread *thread : threads)
    states[thread->index].known = known;
}

uint32_t ClusterLifetime::addPlace(const Thread &thread) {
  return states.empty() ? 0 : ++states[thread.index].place;
}

bool ClusterLifetime::isAfter(const Thread &thread, const Thread &other,
                              uint32_t place) const {
  return !states.empty() &&
         states[thread.index].known.get(other.index) >= place;
}

//===----------------------------------------------------------------------===//
// From the first thread to the last
//===----------------------------------------------------------------------===//

/// Whether the beginning of `peer` happened before the thread's next access.
/// The first clock of a thread is its beginning.
bool ClusterLifetime::isAfterBegin(const Thread &thread,
                                   const Block &peer) const {
  for (uint32_t i = 0; i < peer.size(); ++i) {
    const Thread &other = peer.getThread(i);
    if (isAfter(thread, other, /*place=*/1) ||
        cluster.sanitizer.isAfter(thread, other.index, /*clock=*/1))
      return true;
  }
  return false;
}

void ClusterLifetime::check(const Thread &thread, const KVCacheSite *site,
                            const Block &peer) {
  if (states.empty())
    return;
  if (peer.numLive() == 0)
    cluster.fail(thread, site,
                 "accesses shared memory of " + peer.describe() +
                     ", whose threads have all ended");
  State &state = states[thread.index];
  if (state.hasBegun[peer.rank])
    return;
  if (!isAfterBegin(thread, peer))
    cluster.fail(
        thread, site,
        "accesses shared memory of " + peer.describe() +
            ", which may not have begun yet: no synchronization orders "
            "its beginning before the access (cluster.arrive and "
            "cluster.wait)");
  state.hasBegun[peer.rank] = true;
}

void ClusterLifetime::note(const Thread &thread, const KVCacheSite *site,
                           const Block &peer) {
  if (states.empty() || &peer == thread.block)
    return;
  State &state = states[thread.index];
  state.accesses[peer.rank] = {++state.place,
                               cluster.sanitizer.getClock(thread), site};
}

bool ClusterLifetime::isOrderedAccess(const Block &block, uint32_t who,
                                      const Access &access) const {
  for (uint32_t i = 0; i < block.size(); ++i) {
    const Thread &thread = block.getThread(i);
    if (states[thread.index].known.get(who) >= access.place ||
        cluster.sanitizer.isAfter(thread, who, access.clock))
      return true;
  }
  return false;
}

void ClusterLifetime::checkEnd(const Block &block) const {
  for (uint32_t who = 0; who < states.size(); ++who) {
    const Access &access = states[who].accesses[block.rank];
    if (access.place > 0 && !isOrderedAccess(block, who, access))
      cluster.fail(cluster.threads[who], access.site,
                   "accesses shared memory of " + block.describe() +
                       ", whose threads may all have ended by then: no "
                       "synchronization orders the access before their end");
  }
}
