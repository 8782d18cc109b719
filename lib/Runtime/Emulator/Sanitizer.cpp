//===- Sanitizer.cpp - Checked accesses of shared memory ------------------===//
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

void Sanitizer::begin(bool on, uint32_t numThreads, uint32_t sharedBytes) {
  isOn = on;
  if (!isOn)
    return;
  ++run;
  order.begin(numThreads);
  pool.reset();
  atomics.clear();
  copies.clear();
  freeCopies.clear();
  hasCopies = false;
  uint32_t wanted = (sharedBytes + kGranuleBytes - 1) / kGranuleBytes;
  if (wanted > numGranules) {
    granules = std::make_unique<Granule[]>(wanted);
    numGranules = wanted;
  }
}

Granule &Sanitizer::getGranule(uint32_t index) {
  Granule &granule = granules[index];
  if (granule.run != run) {
    granule = {};
    granule.run = run;
  }
  return granule;
}

/// Calls `visit` with the index of each granule of a range and the mask of its
/// bytes.
template <typename Visitor>
static void forEachGranule(SharedRange range, Visitor visit) {
  uint32_t end = range.offset + range.bytes;
  for (uint32_t begin = range.offset; begin < end;) {
    uint32_t index = begin / kGranuleBytes, first = begin % kGranuleBytes;
    uint32_t last = std::min(end - index * kGranuleBytes, kGranuleBytes);
    visit(index, static_cast<uint16_t>((1u << last) - (1u << first)));
    begin = (index + 1) * kGranuleBytes;
  }
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string describe(const KVCacheSite *site) {
  return std::string(site->op) + " at " + site->location;
}

static bool isWrite(Sanitizer::Kind kind) {
  return kind == Sanitizer::Kind::Write || kind == Sanitizer::Kind::AtomicWrite;
}

static bool isAtomic(Sanitizer::Kind kind) {
  return kind == Sanitizer::Kind::AtomicRead ||
         kind == Sanitizer::Kind::AtomicWrite;
}

std::string Sanitizer::describe(const Access &access) const {
  const char *verbs[] = {"reads ", "writes ", "atomically reads ",
                         "atomically updates "};
  return std::string(access.copy ? "issues a copy that " : "") +
         verbs[static_cast<int>(access.kind)] +
         std::to_string(access.range.bytes) + " bytes at " +
         block.describeShared(access.range.offset);
}

std::string Sanitizer::describe(const CopyState &copy) const {
  return "a copy issued by " + Block::describe(block.threads[copy.issuer]) +
         " in " + ::describe(copy.site);
}

std::string Sanitizer::describeAccess(const Cell &cell, Kind kind) const {
  const char *verbs[] = {" reads", " writes", " atomically reads",
                         " atomically updates"};
  return Block::describe(block.threads[cell.who]) +
         verbs[static_cast<int>(kind)] + " in " + ::describe(cell.getSite());
}

/// How a copy is in the way.
std::string Sanitizer::describeConflict(const CopyState &copy,
                                        Relation relation) const {
  constexpr char unordered[] = ", without order between them (a race)";
  std::string text = describe(copy);
  bool isAsync = copy.proxy == Proxy::Async;
  if (relation == Relation::InFlight && copy.isWrite)
    return text + " has in flight: " +
           (isAsync ? "its barrier has not completed"
                    : "nobody has waited for it");
  if (relation == Relation::InFlight)
    return text + " still reads: they are used again before the wait for it";
  text += copy.isWrite ? " has written" : " has read";
  if (relation == Relation::Unfenced)
    return text + ", without a proxy fence between them (fence.proxy.async)";
  if (copy.end.event.who < block.size())
    return text + unordered;
  return text + ", but the thread has not waited for its barrier";
}

std::string Sanitizer::describeConflict(const Access &access, const Cell &cell,
                                        Kind kind) const {
  Relation relation = relate(access, cell, kind);
  if (cell.isCopy())
    return describeConflict(copies[cell.clock], relation);
  return describeAccess(cell, kind) +
         (relation == Relation::Unfenced
              ? " without a proxy fence between them (fence.proxy.async)"
              : " without order between them (a race)");
}

/// `mask` has the bytes that something is wrong with.
void Sanitizer::fail(const Access &access, uint32_t index, uint16_t mask,
                     const std::string &what) const {
  uint32_t first = index * kGranuleBytes + __builtin_ctz(mask);
  std::string message = describe(access) + ", which " + what;
  if (first != access.range.offset)
    message +=
        "; the first of these bytes is at " + block.describeShared(first);
  block.fail(access.thread, access.site, message);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// How `access` is ordered behind the one of a cell, of this kind.
Sanitizer::Relation Sanitizer::relate(const Access &access, const Cell &cell,
                                      Kind kind) const {
  Order::End end{{cell.who, cell.clock}};
  bool wantsFence = access.isAsync && isWrite(kind);
  if (cell.isCopy()) {
    const CopyState &copy = copies[cell.clock];
    if (copy.isInFlight)
      return Relation::InFlight;
    end = copy.end;
    wantsFence &= copy.proxy == Proxy::Generic;
  }
  if (!order.knows(access.thread.index, end))
    return Relation::Unordered;
  if (wantsFence && !order.hasFenced(access.thread.index, end))
    return Relation::Unfenced;
  return Relation::Ordered;
}

void Sanitizer::checkList(const Access &access, const CellList &list, Kind kind,
                          uint32_t index, uint16_t mask) const {
  if (list.isEmpty())
    return;
  const Cell *cell = list.find(mask, [&](const Cell &cell) {
    return relate(access, cell, kind) != Relation::Ordered;
  });
  if (cell)
    fail(access, index, cell->mask & mask,
         describeConflict(access, *cell, kind));
}

/// Two accesses of the same byte want an order if one of them writes, unless
/// both are atomic.
void Sanitizer::checkGranule(const Access &access, const Granule &granule,
                             uint32_t index, uint16_t mask) const {
  if (uint16_t bytes = granule.barrier & mask)
    fail(access, index, bytes, "is part of an mbarrier");
  uint16_t missing = mask & ~granule.initialized;
  if (access.reads && missing)
    fail(access, index, missing,
         hasCopies ? "never arrived: nobody has written them, and no copy has "
                     "been issued that does"
                   : "nobody has written");
  checkList(access, granule.writes, Kind::Write, index, mask);
  if (isWrite(access.kind))
    checkList(access, granule.reads, Kind::Read, index, mask);
  if (granule.atomics.isEmpty() || isAtomic(access.kind))
    return;
  const Cell *cell = granule.atomics.find(mask, [&](const Cell &cell) {
    Kind kind = cell.isWrite ? Kind::AtomicWrite : Kind::AtomicRead;
    return (cell.isWrite || isWrite(access.kind)) &&
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

  /// Whoever is ordered behind the access is behind what that is behind of. But
  /// an atomic write lets later atomic accesses go unordered, and who waits for
  /// a copy needs not know what the thread knew that issued it.
  bool replaces(const Cell &cell) const {
    if (access.copy || (access.kind == Kind::AtomicRead && cell.isWrite))
      return false;
    return sanitizer.relate(access, cell, Kind::Read) == Relation::Ordered;
  }

  /// Writes must be visible to copies as well.
  bool isObsolete(const Cell &cell) const {
    Order::End end{{cell.who, cell.clock}};
    if (cell.isCopy()) {
      const CopyState &copy = sanitizer.copies[cell.clock];
      if (copy.isInFlight)
        return false;
      end = copy.end;
    }
    return sanitizer.order.isKnownToAll(end) &&
           (!cell.isWrite || sanitizer.order.isFencedForAll(end));
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

/// What everybody knows since the last barrier of the block must not be looked
/// at by each of many threads.
void Sanitizer::compact(const Access &access, Granule &granule) {
  if (granule.numBarriers == order.getNumBarriers())
    return;
  granule.numBarriers = order.getNumBarriers();
  Rules rules{*this, access};
  granule.reads.compact(pool, rules);
  granule.atomics.compact(pool, rules);
}

void Sanitizer::touch(const Access &access) {
  forEachGranule(access.range, [&](uint32_t index, uint16_t mask) {
    Granule &granule = getGranule(index);
    compact(access, granule);
    checkGranule(access, granule, index, mask);
    note(access, granule, mask);
  });
}

void Sanitizer::access(Thread &thread, const KVCacheSite *site,
                       SharedRange range, uint32_t flags) {
  if (!isOn)
    return;
  bool writes = flags & KVCacheAccessWrite, reads = flags & KVCacheAccessRead;
  Kind kind = flags & KVCacheAccessAtomic
                  ? writes ? Kind::AtomicWrite : Kind::AtomicRead
              : writes ? Kind::Write
                       : Kind::Read;
  touch({thread, site, range, kind, reads, /*isAsync=*/false, std::nullopt});
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

void Sanitizer::release(Thread &thread, Knowledge &into) {
  if (isOn)
    order.release(thread.index, into);
}

void Sanitizer::acquire(Thread &thread, const Knowledge &from) {
  if (isOn)
    order.acquire(thread.index, from);
}

void Sanitizer::synchronize(const std::vector<Thread *> &threads) {
  if (isOn)
    order.synchronize(threads, threads.size() == block.numLive());
}

/// Each may take as many bytes as the block has clocks.
Knowledge &Sanitizer::getKnowledge(const void *atomic) {
  constexpr size_t most = 4096;
  auto found = atomics.find(atomic);
  if (found != atomics.end())
    return found->second;
  return atomics.size() < most ? atomics[atomic] : otherAtomics;
}

void Sanitizer::acquireAtomic(Thread &thread, const void *pointer,
                              uint32_t flags) {
  if (isOn && (flags & KVCacheAccessRead))
    order.acquire(thread.index, getKnowledge(pointer));
}

void Sanitizer::releaseAtomic(Thread &thread, const void *pointer,
                              uint32_t flags) {
  if (!isOn || !(flags & KVCacheAccessWrite))
    return;
  Knowledge &knowledge = getKnowledge(pointer);
  // Who reads what a store wrote learns nothing of those before it.
  if (!(flags & KVCacheAccessRead) && &knowledge != &otherAtomics)
    knowledge.clear();
  order.release(thread.index, knowledge);
}

void Sanitizer::fenceProxy(Thread &thread) {
  if (!isOn)
    return;
  order.fenceProxy(thread.index);
  Memory::get().noteProxyFence();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Sanitizer::Copy Sanitizer::issue(Thread &thread, const KVCacheSite *site,
                                 SharedRange range, Proxy proxy, Kind kind) {
  Copy copy = copies.size();
  CopyState state{site, range, thread.index, proxy, kind == Kind::Write, true,
                  0,    {}};
  if (freeCopies.empty()) {
    copies.push_back(state);
  } else {
    copy = freeCopies.back();
    freeCopies.pop_back();
    copies[copy] = state;
  }
  touch({thread, site, range, kind, kind == Kind::Read, proxy == Proxy::Async,
         copy});
  return copy;
}

Sanitizer::Copy Sanitizer::issueWrite(Thread &thread, const KVCacheSite *site,
                                      SharedRange range, Proxy proxy) {
  if (!isOn)
    return 0;
  hasCopies = true;
  Copy copy = issue(thread, site, range, proxy, Kind::Write);
  // What reads too early gets what no data are.
  std::memset(block.shared + range.offset, 0xff, range.bytes);
  return copy;
}

Sanitizer::Copy Sanitizer::issueRead(Thread &thread, const KVCacheSite *site,
                                     SharedRange range, Proxy proxy) {
  return isOn ? issue(thread, site, range, proxy, Kind::Read) : 0;
}

Order::End Sanitizer::finish(Copy copy, Order::End end) {
  copies[copy].isInFlight = false;
  copies[copy].end = end;
  if (copies[copy].numCells == 0)
    freeCopies.push_back(copy);
  return end;
}

Order::End Sanitizer::complete(Copy copy, Knowledge &into) {
  if (!isOn)
    return {};
  Order::End end = order.complete(into);
  if (copies[copy].proxy == Proxy::Generic)
    order.noteCopy(copies[copy].issuer, end);
  return finish(copy, end);
}

Order::End Sanitizer::complete(Copy copy, Thread &thread) {
  if (!isOn)
    return {};
  bool isByThread = copies[copy].proxy == Proxy::Generic;
  return finish(copy, order.complete(thread.index, isByThread));
}

Clocks Sanitizer::getCopies(const Thread &thread) {
  return isOn ? order.getCopies(thread.index) : Clocks();
}

void Sanitizer::releaseCopies(const Clocks &ends, Knowledge &into) {
  if (isOn)
    order.releaseCopies(ends, into);
}

void Sanitizer::releaseCopy(const Order::End &end, Knowledge &into) {
  if (isOn)
    order.releaseCopy(end, into);
}

/// A cell of a copy is dropped. With the last one its number is free.
void Sanitizer::forget(Copy copy) {
  if (--copies[copy].numCells == 0)
    freeCopies.push_back(copy);
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

static constexpr uint32_t kBarrierBytes = 8;

void Sanitizer::placeBarrier(Thread &thread, const KVCacheSite *site,
                             uint32_t offset) {
  if (!isOn)
    return;
  hasCopies = true;
  SharedRange range{offset, kBarrierBytes};
  access(thread, site, range, KVCacheAccessWrite);
  forEachGranule(range, [&](uint32_t index, uint16_t mask) {
    getGranule(index).barrier |= mask;
  });
}

/// What an mbarrier leaves behind is nothing to read (PTX ISA,
/// "mbarrier.inval").
void Sanitizer::useBarrier(const Thread &thread, const KVCacheSite *site,
                           uint32_t offset) {
  if (!isOn)
    return;
  Access access{thread,
                site,
                {offset, kBarrierBytes},
                Kind::AtomicWrite,
                /*reads=*/false,
                /*isAsync=*/false,
                std::nullopt};
  forEachGranule(access.range, [&](uint32_t index, uint16_t mask) {
    checkList(access, getGranule(index).writes, Kind::Write, index, mask);
  });
}

void Sanitizer::removeBarrier(Thread &thread, const KVCacheSite *site,
                              uint32_t offset) {
  if (!isOn)
    return;
  SharedRange range{offset, kBarrierBytes};
  forEachGranule(range, [&](uint32_t index, uint16_t mask) {
    getGranule(index).barrier &= ~mask;
  });
  access(thread, site, range, KVCacheAccessWrite);
  forEachGranule(range, [&](uint32_t index, uint16_t mask) {
    getGranule(index).initialized &= ~mask;
  });
}

//===----------------------------------------------------------------------===//
// End
//===----------------------------------------------------------------------===//

void Sanitizer::end() {
  if (!isOn)
    return;
  for (const CopyState &copy : copies)
    if (copy.isInFlight)
      block.fail(std::string(copy.site->location) + ": " + copy.site->op +
                 ": " + Block::describe(block.threads[copy.issuer]) + " of " +
                 block.describe() + " issues a copy that " +
                 (copy.isWrite ? "writes " : "reads ") +
                 std::to_string(copy.range.bytes) + " bytes at " +
                 block.describeShared(copy.range.offset) +
                 " and is in flight when the block ends");
}
