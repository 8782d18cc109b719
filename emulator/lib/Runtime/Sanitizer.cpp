//===- Sanitizer.cpp - Checked accesses of memory -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sanitizer.h"
#include "Block.h"
#include "Memory.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache::emulator;

void Sanitizer::begin(bool on, LaunchShadow *shadow, uint64_t newNumber) {
  isOn = on;
  if (!isOn)
    return;
  ++run;
  launch = shadow;
  number = newNumber;
  hasTurn = launch && launch->isTogether();
  published.assign(hasTurn ? cluster.size() : 0, 0);
  isAhead = cluster.getGrid().isAhead;
  global.reset();
  rewrites.clear();
  poison = {};
  origins.clear();
  stored.clear();
  order.begin(cluster.size(),
              launch ? launch->getClocksAtStart() : OtherBlocks(),
              launch ? getId() : 0);
  pool.reset();
  atomics.clear();
  copies.clear();
  rowReads.begin();
  freeCopies.clear();
  hasCopies = false;
  uint32_t sharedBytes = cluster.getGrid().sharedVariables.size();
  granulesOfBlock = (sharedBytes + kGranuleBytes - 1) / kGranuleBytes;
  uint32_t wanted = granulesOfBlock * cluster.numBlocks();
  if (wanted > numGranules) {
    granules = std::make_unique<Granule[]>(wanted);
    numGranules = wanted;
  }
}

Granule &Sanitizer::getGranule(uint64_t index, bool isGlobal) {
  constexpr uint64_t span = Cluster::kSpanBytes / kGranuleBytes;
  Granule &granule =
      isGlobal ? global.get(index)
               : granules[index / span * granulesOfBlock + index % span];
  if (granule.run != run) {
    granule = {};
    granule.run = run;
  }
  return granule;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// How `access` is ordered after the one of a cell, of this kind.
Sanitizer::Relation Sanitizer::relate(const Access &access, const Cell &cell,
                                      Kind kind, uint16_t mask) const {
  if (cell.isOfLanes())
    return rowReads.findUnknown(access.thread.index, cell, mask)
               ? Relation::Unordered
               : Relation::Ordered;
  Order::End end{{cell.who, cell.clock}};
  bool needsFence = access.isAsync && isWrite(kind);
  if (cell.isCopy()) {
    const CopyState &copy = copies[cell.clock];
    if (copy.isInFlight)
      return Relation::InFlight;
    end = copy.end;
    needsFence &= copy.proxy == Proxy::Generic;
  }
  if (!order.isAfter(access.thread.index, end))
    return Relation::Unordered;
  Space space = access.isGlobal ? Space::Global : Space::Shared;
  if (needsFence && !order.hasFenced(space, access.thread.index, end))
    return Relation::Unfenced;
  return Relation::Ordered;
}

void Sanitizer::checkList(const Access &access, const CellList &list, Kind kind,
                          uint64_t index, uint16_t mask) {
  if (list.isEmpty())
    return;
  const Cell *cell = list.find(mask, [&](const Cell &cell) {
    return relate(access, cell, kind, mask) != Relation::Ordered;
  });
  if (!cell)
    return;
  std::optional<Cell> laneCell;
  if (cell->isOfLanes()) {
    laneCell = rowReads.findUnknown(access.thread.index, *cell, mask);
    cell = &*laneCell;
  }
  if (isRewrite(access, *cell, kind))
    noteRewrite(access, *cell, index, cell->mask & mask);
  else
    fail(access, index, cell->mask & mask,
         describeConflict(access, *cell, kind));
}

/// Whether two atomic accesses are of threads of different blocks, and one of
/// them is atomic for its own block only.
bool Sanitizer::isOfAnotherBlock(const Access &access, const Cell &cell) const {
  return cluster.threads[cell.who].block != access.thread.block &&
         !(access.isOfCluster && cell.isOfCluster);
}

/// Two accesses of the same byte need an order if one of them writes, unless
/// both are atomic.
void Sanitizer::checkGranule(const Access &access, const Granule &granule,
                             uint64_t index, uint16_t mask) {
  if (uint16_t bytes = granule.barrier & mask)
    fail(access, index, bytes, "is part of an mbarrier");
  uint16_t missing = mask & ~granule.initialized;
  if (access.reads && missing && !access.isGlobal) {
    if (!access.poisons)
      fail(access, index, missing, describeMissing(access, index, missing));
    notePoison(access, index, missing);
  }
  checkList(access, granule.writes, Kind::Write, index, mask);
  if (isWrite(access.kind))
    checkList(access, granule.reads, Kind::Read, index, mask);
  bool isOfOne = cluster.numBlocks() == 1;
  if (granule.atomics.isEmpty() || (isAtomic(access.kind) && isOfOne))
    return;
  const Cell *cell = granule.atomics.find(mask, [&](const Cell &cell) {
    Kind kind = cell.isWrite ? Kind::AtomicWrite : Kind::AtomicRead;
    return (cell.isWrite || isWrite(access.kind)) &&
           (!isAtomic(access.kind) || isOfAnotherBlock(access, cell)) &&
           relate(access, cell, kind) != Relation::Ordered;
  });
  if (cell)
    fail(
        access, index, cell->mask & mask,
        describeConflict(access, *cell,
                         cell->isWrite ? Kind::AtomicWrite : Kind::AtomicRead));
}

/// An access in place of cells before it (`CellList`). None of those that it
/// conflicts with are left unordered.
struct Sanitizer::Rules {
  Sanitizer &sanitizer;
  const Access &access;

  /// Order is transitive. But an atomic write lets later atomic accesses
  /// go unordered, and a wait for a copy does not
  /// acquire the clocks of the thread that issued it.
  bool replaces(const Cell &cell) const {
    if (access.copy || (access.kind == Kind::AtomicRead && cell.isWrite))
      return false;
    if (access.lanesCell)
      return cell.isOfLanes() &&
             sanitizer.rowReads.isSameWarp(cell, *access.lanesCell);
    return sanitizer.relate(access, cell, Kind::Read) == Relation::Ordered;
  }

  /// Writes must be visible to copies as well, and other blocks have not
  /// acquired barriers here.
  bool isObsolete(const Cell &cell) const {
    if (access.isGlobal)
      return false;
    if (cell.isOfLanes())
      return sanitizer.rowReads.isBeforeAll(cell);
    Order::End end{{cell.who, cell.clock}};
    if (cell.isCopy()) {
      const CopyState &copy = sanitizer.copies[cell.clock];
      if (copy.isInFlight)
        return false;
      end = copy.end;
    }
    return sanitizer.order.isBeforeAll(end) &&
           (!cell.isWrite ||
            sanitizer.order.isFencedForAll(Space::Shared, end));
  }

  void forget(const Cell &cell) const {
    if (cell.isCopy())
      sanitizer.forget(cell.clock);
  }
};

void Sanitizer::note(const Access &access, Granule &granule, uint16_t mask) {
  Rules rules{*this, access};
  Cell cell;
  cell.clock = access.copy ? *access.copy : order.getClock(access.thread.index);
  cell.who = access.copy ? uint16_t{Cell::kCopy} : access.thread.index;
  cell.mask = mask;
  cell.site = reinterpret_cast<uintptr_t>(access.site);
  cell.isWrite = isWrite(access.kind);
  cell.isOfDevice = access.isOfDevice;
  cell.isOfCluster = access.isOfCluster;
  cell.isVolatile = access.isVolatile;
  cell.row = 0;
  if (access.lanesCell)
    cell = *access.lanesCell;
  if (access.copy)
    ++copies[*access.copy].numCells;
  if (isAtomic(access.kind))
    granule.atomics.add(cell, pool, rules);
  else if (access.kind == Kind::Read)
    granule.reads.add(cell, pool, rules);
  else {
    granule.reads.strip(mask, pool, rules);
    granule.writes.strip(mask, pool, rules);
    granule.atomics.strip(mask, pool, rules);
    granule.writes.add(cell, pool, rules);
  }
  if (isWrite(access.kind))
    granule.initialized |= mask;
}

/// Removes accesses that happened before the last barrier of the block, so that
/// later threads need not compare with them.
void Sanitizer::compact(const Access &access, Granule &granule) {
  if (granule.numBarriers == order.getNumBarriers() || access.isGlobal)
    return;
  granule.numBarriers = order.getNumBarriers();
  Rules rules{*this, access};
  granule.reads.compact(pool, rules);
  granule.atomics.compact(pool, rules);
}

void Sanitizer::touch(const Access &access) {
  forEachGranule(access.begin, access.bytes,
                 [&](uint64_t index, uint16_t mask) {
                   Granule &granule = getGranule(index, access.isGlobal);
                   compact(access, granule);
                   checkGranule(access, granule, index, mask);
                   if (access.isInvariant)
                     checkInvariant(access, index, mask);
                   if (access.isGlobal && launch && launch->getEarlier())
                     checkPast(access, index, mask, *launch->getEarlier());
                   if (access.isGlobal && hasTurn)
                     checkPast(access, index, mask, launch->accesses);
                   note(access, granule, mask);
                 });
}

Poison Sanitizer::access(Thread &thread, const KVCacheSite *site,
                         SharedRange range, uint32_t flags,
                         const void *rewritten) {
  if (!isOn)
    return {};
  checkRewrites();
  Access access{thread,
                site,
                range.offset,
                range.bytes,
                getKind(flags),
                (flags & KVCacheAccessRead) != 0,
                /*isAsync=*/false,
                std::nullopt};
  access.isVolatile = flags & KVCacheAccessVolatile;
  access.poisons = flags & KVCacheAccessPoisons;
  access.isOfCluster = getOrdering(flags).isOfCluster;
  access.rewritten = static_cast<const char *>(rewritten);
  poison = {};
  touch(access);
  return poison;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

uint32_t Sanitizer::getClock(const Thread &thread) const {
  return isOn ? order.getClock(thread.index) : 0;
}

Clocks Sanitizer::getSeen(const Thread &thread) const {
  return order.getSeen(thread.index);
}

void Sanitizer::release(Thread &thread, ReleaseClock &into) {
  if (isOn)
    order.release(thread.index, into);
}

void Sanitizer::acquire(Thread &thread, const ReleaseClock &from) {
  if (isOn)
    order.acquire(thread.index, from);
}

void Sanitizer::acquireCopies(Thread &thread, const ReleaseClock &from) {
  if (isOn)
    order.acquireCopies(thread.index, from);
}

void Sanitizer::releaseFenced(Thread &thread, ReleaseClock &into) {
  if (isOn)
    order.releaseAtomic(thread.index, into,
                        /*others=*/nullptr, getOrdering(KVCacheAccessCluster));
}

void Sanitizer::synchronize(const std::vector<Thread *> &threads) {
  if (!isOn)
    return;
  cluster.lifetime.synchronize(threads);
  order.synchronize(threads, threads.size() == cluster.numLive());
}

/// Each may take as many bytes as the block has clocks.
Sanitizer::Released &Sanitizer::getReleased(const void *atomic) {
  constexpr size_t most = 4096;
  auto found = atomics.find(atomic);
  if (found != atomics.end())
    return found->second;
  return atomics.size() < most ? atomics[atomic] : otherAtomics;
}

/// In a cluster of one block, its scope is that of the block.
Ordering Sanitizer::getOrdering(uint32_t flags) const {
  constexpr uint32_t clusterScopes = KVCacheAccessCluster | KVCacheAccessDevice;
  return {(flags & KVCacheAccessAcquire) != 0,
          (flags & KVCacheAccessRelease) != 0,
          (flags & KVCacheAccessDevice) != 0,
          cluster.numBlocks() > 1 && (flags & clusterScopes)};
}

/// The clocks that threads of a block publish by atomic accesses of one
/// address.
ReleaseClock &Sanitizer::getReleasedOfBlock(Released &released,
                                            const Thread &thread) const {
  released.clocksByBlock.resize(cluster.numBlocks());
  return released.clocksByBlock[thread.block->rank];
}

/// The clocks that an atomic access publishes to and acquires from other
/// blocks; null for a scope below the device.
OtherBlocks *Sanitizer::getReleasedForDevice(const void *pointer,
                                             uint32_t flags) {
  if (!launch || !(flags & KVCacheAccessDevice) || cluster.isShared(pointer))
    return nullptr;
  return &launch->getReleased(pointer).others;
}

void Sanitizer::acquireAtomic(Thread &thread, const KVCacheSite *site,
                              const void *pointer, uint32_t flags) {
  if (!isOn)
    return;
  if (!cluster.isShared(pointer))
    takeTurn(thread, site);
  if (!(flags & KVCacheAccessRead))
    return;
  Released &released = getReleased(pointer);
  cluster.lifetime.acquire(thread, released.places);
  Ordering ordering = getOrdering(flags);
  bool isOfOne = cluster.numBlocks() == 1;
  if (isOfOne || ordering.isOfCluster)
    order.acquireAtomic(thread.index, released.clocks,
                        getReleasedForDevice(pointer, flags), ordering);
  ordering.isOfCluster = false;
  if (!isOfOne)
    order.acquireAtomic(thread.index, getReleasedOfBlock(released, thread),
                        /*others=*/nullptr, ordering);
}

void Sanitizer::releaseAtomic(Thread &thread, const void *pointer,
                              uint32_t flags) {
  if (!isOn || !(flags & KVCacheAccessWrite))
    return;
  Released &released = getReleased(pointer);
  OtherBlocks *forDevice = getReleasedForDevice(pointer, flags);
  bool isStore = !(flags & KVCacheAccessRead);
  LaunchShadow::Released *launchReleased = launch && !cluster.isShared(pointer)
                                               ? &launch->getReleased(pointer)
                                               : nullptr;
  bool isOthers = released.writer != thread.index ||
                  (launchReleased && launchReleased->writer != getId());
  // A read of the value of a store does not acquire the stores of others before
  // it.
  if (isStore && isOthers && &released != &otherAtomics) {
    released.clocks.clear();
    released.clocksByBlock.clear();
    released.places = {};
    if (launchReleased)
      launchReleased->others = {};
  }
  if (isStore) {
    released.writer = thread.index;
    if (launchReleased)
      launchReleased->writer = getId();
  }
  cluster.lifetime.release(thread, released.places);
  Ordering ordering = getOrdering(flags);
  bool isOfOne = cluster.numBlocks() == 1;
  if (isOfOne || ordering.isOfCluster)
    order.releaseAtomic(thread.index, released.clocks, forDevice, ordering);
  ordering.isOfCluster = false;
  if (!isOfOne)
    order.releaseAtomic(thread.index, getReleasedOfBlock(released, thread),
                        /*others=*/nullptr, ordering);
}

void Sanitizer::fence(Thread &thread, uint32_t flags) {
  if (isOn)
    order.fence(thread.index, getOrdering(flags));
}

void Sanitizer::fenceProxy(Thread &thread, Space space) {
  if (isOn)
    order.fenceProxy(thread.index, space);
}

//===----------------------------------------------------------------------===//
// The launch before
//===----------------------------------------------------------------------===//

void Sanitizer::acquireEarlier(Thread &thread) {
  if (!isOn || !launch)
    return;
  launch->noteWait();
  order.acquireAllBelow(thread.index, launch->getFirstBlock());
}

/// Like a relaxed store: it publishes the clocks of the thread's last fence.
void Sanitizer::startDependents(Thread &thread) {
  if (!isOn || !launch)
    return;
  ReleaseClock blockClocks;
  OtherBlocks released;
  order.releaseAtomic(thread.index, blockClocks, &released,
                      getOrdering(KVCacheAccessDevice));
  if (!released.isEmpty())
    launch->addStarting(released);
}

//===----------------------------------------------------------------------===//
// End
//===----------------------------------------------------------------------===//

void Sanitizer::failInFlight(const CopyState &copy, const Block &block) const {
  const Thread &issuer = cluster.threads[copy.issuer];
  cluster.fail(
      issuer, copy.site,
      std::string("issues a copy that ") +
          (copy.isWrite ? "writes " : "reads ") + std::to_string(copy.bytes) +
          " bytes at " + describePlace(copy.begin, copy.isGlobal) +
          " and is in flight when " +
          (issuer.block == &block ? "the block" : block.describe()) + " ends");
}

void Sanitizer::endBlock(const Block &block) {
  if (!isOn || cluster.numBlocks() == 1)
    return;
  for (const CopyState &copy : copies)
    if (copy.isInFlight && !copy.isGlobal &&
        copy.begin >> Cluster::kSpanBits == block.rank)
      failInFlight(copy, block);
}

void Sanitizer::end() {
  if (!isOn)
    return;
  checkRewrites();
  for (const CopyState &copy : copies)
    if (copy.isInFlight)
      failInFlight(copy, *cluster.threads[copy.issuer].block);
}
