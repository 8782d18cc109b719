//===- Order.cpp - Which accesses happen before which ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Order.h"
#include "Block.h"

#include <algorithm>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void Order::begin(uint32_t count, const OtherBlocks &known, uint32_t number) {
  ++run;
  block = number;
  numThreads = count;
  numBarriers = 0;
  states.assign(count, {});
  slots.clear();
  all.assign(count, 0);
  for (std::vector<uint32_t> &fenced : fencedForAll)
    fenced.assign(count, 0);
  fences.clear();
  hasOthers = !known.isEmpty();
  if (hasOthers)
    for (State &state : states)
      state.others = known;
  lastSeen = {};
  lastFenced = {};
}

void Order::acquireAllBelow(uint32_t thread, uint32_t block) {
  states[thread].others.addAllBelow(block);
  hasOthers = true;
}

bool Order::hasFenced(Space space, uint32_t thread, uint32_t who,
                      uint32_t clock) const {
  const Fenced &fenced = states[thread].fenced[getNumber(space)];
  return isFencedForAll(space, who, clock) ||
         (who == thread && clock <= fenced.clock) ||
         (fenced.hasAll && isBeforeAll(who, clock)) ||
         clock <= fenced.seen.get(who);
}

bool Order::isAfterAll(uint32_t thread, uint32_t other) const {
  const State &own = states[thread], &theirs = states[other];
  const Fenced &fenced = own.fenced[getNumber(Space::Shared)];
  const Fenced &theirFenced = theirs.fenced[getNumber(Space::Shared)];
  if (theirFenced.hasAll && !fenced.hasAll)
    return false;
  auto includes = [&](const Clocks &clocks, const Clocks &others) {
    if (clocks.isSame(others))
      return true;
    for (uint32_t who = 0; who < all.size(); ++who)
      if (who != thread && clocks.get(who) < others.get(who))
        return false;
    return true;
  };
  return includes(own.seen, theirs.seen) &&
         includes(fenced.seen, theirFenced.seen);
}

void Order::prepare(ReleaseClock &clocks) const {
  if (clocks.run == run)
    return;
  clocks = {};
  clocks.run = run;
}

/// `all` is not part of it: a thread that acquires lives, and has it.
void Order::release(uint32_t thread, ReleaseClock &into) {
  prepare(into);
  State &state = states[thread];
  if (!state.seen.isSame(into.lastSeen)) {
    into.seen.join(state.seen);
    into.lastSeen = state.seen;
  }
  into.seen.raise(thread, state.clock);
  for (Space space : kSpaces) {
    size_t number = getNumber(space);
    const Fenced &fenced = state.fenced[number];
    Clocks &known = into.fenced[number], &last = into.lastFenced[number];
    if (fenced.hasAll)
      known.join(all);
    if (!fenced.seen.isSame(last)) {
      known.join(fenced.seen);
      last = fenced.seen;
    }
    known.raise(thread, fenced.clock);
  }
  into.others.join(state.others);
  ++state.clock;
}

void Order::LastJoin::join(Clocks &into, const Clocks &other) {
  if (other.isEmpty() || into.isSame(other))
    return;
  if (!into.isSame(from) || !other.isSame(with)) {
    from = into;
    with = other;
    result = into;
    result.join(other);
  }
  into = result;
}

Clocks Order::getSeen(uint32_t thread) const {
  Clocks known = states[thread].seen;
  known.join(all);
  return known;
}

void Order::acquire(uint32_t thread, const ReleaseClock &from) {
  if (from.run != run)
    return;
  lastSeen.join(states[thread].seen, from.seen);
  for (Space space : kSpaces) {
    size_t number = getNumber(space);
    lastFenced[number].join(states[thread].fenced[number].seen,
                            from.fenced[number]);
  }
  states[thread].others.join(from.others);
  hasOthers |= !from.others.isEmpty();
}

void Order::synchronize(const std::vector<Thread *> &threads, bool isAll) {
  if (isAll)
    synchronizeAll(threads);
  else
    synchronizeSome(threads);
  if (hasOthers || !fences.empty())
    synchronizeFences(threads);
}

/// Merges clocks of other blocks and of fences, which most threads do not have.
void Order::synchronizeFences(const std::vector<Thread *> &threads) {
  OtherBlocks others;
  for (const Thread *thread : threads)
    others.join(states[thread->index].others);
  for (const Thread *thread : threads)
    states[thread->index].others = others;
  if (fences.empty())
    return;
  Fences all;
  for (const Thread *thread : threads) {
    const Fences &own = fences[thread->index];
    join(all.read, own.read);
    join(all.readOfCluster, own.readOfCluster);
    join(all.fenced, own.fenced);
    join(all.fencedForCluster, own.fencedForCluster);
    all.fencedForDevice.join(own.fencedForDevice);
  }
  for (const Thread *thread : threads)
    fences[thread->index] = all;
}

void Order::synchronizeAll(const std::vector<Thread *> &threads) {
  ++numBarriers;
  for (Space space : kSpaces)
    synchronizeAll(threads, space);
  Clocks seen;
  for (const Thread *thread : threads) {
    State &state = states[thread->index];
    if (!state.seen.isSame(seen))
      state.seen.joinInto(all);
    seen = std::move(state.seen);
    state.seen = {};
  }
  for (const Thread *thread : threads)
    all[thread->index] = states[thread->index].clock++;
}

/// Merges the fences of the threads, while `all` is the state before they
/// synchronize.
void Order::synchronizeAll(const std::vector<Thread *> &threads, Space space) {
  size_t number = getNumber(space);
  auto hasFencedAll = [&](const Thread *thread) {
    return states[thread->index].fenced[number].hasAll;
  };
  std::vector<uint32_t> &forAll = fencedForAll[number];
  if (std::any_of(threads.begin(), threads.end(), hasFencedAll))
    forAll = all;
  Clocks seen;
  for (const Thread *thread : threads) {
    Fenced &fenced = states[thread->index].fenced[number];
    if (!fenced.seen.isSame(seen))
      fenced.seen.joinInto(forAll);
    seen = std::move(fenced.seen);
    fenced.seen = {};
    fenced.hasAll = false;
    forAll[thread->index] = std::max(forAll[thread->index], fenced.clock);
  }
}

void Order::synchronizeSome(const std::vector<Thread *> &threads) {
  for (Space space : kSpaces)
    synchronizeSome(threads, space);
  Clocks seen;
  const Clocks *last = &seen;
  for (const Thread *thread : threads) {
    const State &state = states[thread->index];
    if (!state.seen.isSame(*last))
      seen.join(*(last = &state.seen));
  }
  for (const Thread *thread : threads)
    seen.raise(thread->index, states[thread->index].clock);
  for (const Thread *thread : threads) {
    State &state = states[thread->index];
    state.seen = seen;
    ++state.clock;
  }
}

void Order::synchronizeSome(const std::vector<Thread *> &threads, Space space) {
  size_t number = getNumber(space);
  Clocks seen;
  bool hasFencedAll = false;
  const Clocks *last = &seen;
  for (const Thread *thread : threads) {
    const Fenced &fenced = states[thread->index].fenced[number];
    if (!fenced.seen.isSame(*last))
      seen.join(*(last = &fenced.seen));
    hasFencedAll |= fenced.hasAll;
  }
  for (const Thread *thread : threads)
    seen.raise(thread->index, states[thread->index].fenced[number].clock);
  for (const Thread *thread : threads) {
    Fenced &fenced = states[thread->index].fenced[number];
    fenced.seen = seen;
    fenced.hasAll = hasFencedAll;
  }
}

void Order::fenceProxy(uint32_t thread, Space space) {
  State &state = states[thread];
  state.fenced[getNumber(space)] = {state.clock++, /*hasAll=*/true, state.seen};
  if (space == Space::Global)
    state.others.fenceProxy();
}

//===----------------------------------------------------------------------===//
// Atomic accesses
//===----------------------------------------------------------------------===//

Order::Fences &Order::getFences(uint32_t thread) {
  fences.resize(states.size());
  return fences[thread];
}

void Order::join(ReleaseClock &into, const ReleaseClock &from) const {
  if (from.run != run)
    return;
  prepare(into);
  into.seen.join(from.seen);
  for (Space space : kSpaces)
    into.fenced[getNumber(space)].join(from.fenced[getNumber(space)]);
  into.others.join(from.others);
}

/// The clocks that a release of the thread publishes.
ReleaseClock Order::getReleaseClock(uint32_t thread) const {
  const State &state = states[thread];
  ReleaseClock clocks;
  prepare(clocks);
  clocks.seen = state.seen;
  clocks.seen.raise(thread, state.clock);
  for (Space space : kSpaces) {
    const Fenced &fenced = state.fenced[getNumber(space)];
    Clocks &known = clocks.fenced[getNumber(space)];
    known = fenced.seen;
    if (fenced.hasAll)
      known.join(all);
    known.raise(thread, fenced.clock);
  }
  clocks.others = state.others;
  return clocks;
}

/// The clocks that a release publishes to other blocks, which do not have
/// `all`.
OtherBlocks Order::getForDevice(uint32_t thread) const {
  const State &state = states[thread];
  Clocks seen = state.seen;
  seen.join(all);
  seen.raise(thread, state.clock);
  const Fenced &own = state.fenced[getNumber(Space::Global)];
  Clocks fenced = own.seen;
  fenced.join(own.hasAll ? all : fencedForAll[getNumber(Space::Global)]);
  fenced.raise(thread, own.clock);
  OtherBlocks others = state.others;
  others.add(block, seen, fenced);
  return others;
}

/// Others may have acquired clocks of threads of this block.
void Order::acquireOthers(uint32_t thread, const OtherBlocks &others) {
  State &state = states[thread];
  state.others.join(others);
  hasOthers |= !others.isEmpty();
  others.joinInto(block, state.seen,
                  state.fenced[getNumber(Space::Global)].seen);
}

void Order::acquireAtomic(uint32_t thread, const ReleaseClock &from,
                          const OtherBlocks *others, Ordering ordering) {
  if (ordering.acquires) {
    acquire(thread, from);
    if (!others)
      return;
    acquireOthers(thread, *others);
    return;
  }
  if (from.run != run && (!others || others->isEmpty()))
    return;
  Fences &own = getFences(thread);
  join(ordering.isOfCluster ? own.readOfCluster : own.read, from);
  ReleaseClock &read = own.read;
  prepare(read);
  if (others)
    read.others.join(*others);
}

void Order::releaseAtomic(uint32_t thread, ReleaseClock &into,
                          OtherBlocks *others, Ordering ordering) {
  if (ordering.releases) {
    if (others)
      others->join(getForDevice(thread));
    return release(thread, into);
  }
  if (fences.empty())
    return;
  const Fences &own = fences[thread];
  join(into, ordering.isOfCluster ? own.fencedForCluster : own.fenced);
  if (others)
    others->join(own.fencedForDevice);
}

void Order::fence(uint32_t thread, Ordering ordering) {
  Fences &own = getFences(thread);
  State &state = states[thread];
  if (ordering.acquires && own.read.run == run) {
    OtherBlocks others = std::move(own.read.others);
    own.read.others = {};
    acquire(thread, own.read);
    own.read.clear();
    if (ordering.isOfDevice) {
      acquireOthers(thread, others);
    } else {
      own.read.others = std::move(others);
    }
  }
  if (ordering.acquires && ordering.isOfCluster) {
    acquire(thread, own.readOfCluster);
    own.readOfCluster.clear();
  }
  if (!ordering.releases)
    return;
  own.fenced = getReleaseClock(thread);
  if (ordering.isOfCluster)
    own.fencedForCluster = own.fenced;
  if (ordering.isOfDevice)
    own.fencedForDevice = getForDevice(thread);
  ++state.clock;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

uint32_t Order::addSlot() {
  slots.push_back(0);
  all.push_back(0);
  for (std::vector<uint32_t> &fenced : fencedForAll)
    fenced.push_back(0);
  return slots.size() - 1;
}

Order::End Order::complete(ReleaseClock &into) {
  prepare(into);
  if (into.copies < 0)
    into.copies = addSlot();
  Event event{numThreads + into.copies, ++slots[into.copies]};
  into.seen.raise(event.who, event.clock);
  return {event};
}

Order::End Order::complete(uint32_t thread, bool isByThread) {
  State &state = states[thread];
  return {{thread, state.clock}, isByThread ? ++state.numWaits : 0};
}

bool Order::isAfter(uint32_t thread, const End &end) const {
  auto isKnown = [&](Event event) {
    return isAfter(thread, event.who, event.clock);
  };
  return isKnown(end.event) ||
         (hasWaitSlot(end) && isKnown(getWait(end.event.who, end.wait)));
}

bool Order::hasFenced(Space space, uint32_t thread, const End &end) const {
  auto isFenced = [&](Event event) {
    return hasFenced(space, thread, event.who, event.clock);
  };
  return isFenced(end.event) ||
         (hasWaitSlot(end) && isFenced(getWait(end.event.who, end.wait)));
}

bool Order::isBeforeAll(const End &end) const {
  return isBeforeAll(end.event.who, end.event.clock) ||
         (hasWaitSlot(end) &&
          isBeforeAll(getWait(end.event.who, end.wait).who, end.wait));
}

bool Order::isFencedForAll(Space space, const End &end) const {
  return isFencedForAll(space, end.event.who, end.event.clock) ||
         (hasWaitSlot(end) &&
          isFencedForAll(space, getWait(end.event.who, end.wait).who,
                         end.wait));
}

Clocks Order::getCopies(uint32_t thread) {
  State &state = states[thread];
  Clocks copies = state.copies;
  if (state.numWaits == 0)
    return copies;
  if (state.waitSlot < 0)
    state.waitSlot = addSlot();
  copies.raise(getWait(thread, 0).who, state.numWaits);
  return copies;
}

Clocks Order::getSeenCopies(uint32_t thread) const {
  Clocks ends;
  ends.joinFrom(numThreads, getSeen(thread));
  return ends;
}

void Order::releaseCopies(const Clocks &ends, ReleaseClock &into) {
  prepare(into);
  into.seen.join(ends);
}

void Order::releaseCopy(const End &end, ReleaseClock &into) {
  prepare(into);
  Event event = end.event;
  if (end.wait) {
    if (!hasWaitSlot(end))
      states[event.who].waitSlot = addSlot();
    event = getWait(event.who, end.wait);
  }
  into.seen.raise(event.who, event.clock);
}

void Order::acquireCopies(uint32_t thread, const ReleaseClock &from) {
  if (from.run == run)
    states[thread].seen.joinFrom(numThreads, from.seen);
}
