//===- GlobalAccesses.cpp - Checked accesses of global memory -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Memory.h"
#include "Sanitizer.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static uint64_t getAddress(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// The first byte that neither this block nor one before it has written, nor
/// the host, or the end.
uint64_t Sanitizer::findMissing(uint64_t begin, uint64_t bytes) const {
  const Memory &memory = Memory::get();
  uint64_t end = begin + bytes;
  for (uint64_t at = begin; at < end;) {
    at = memory.findMissing(at, end - at);
    const Granule *granule =
        at < end ? global.find(at / kGranuleBytes) : nullptr;
    uint32_t mine = granule && granule->run == run ? granule->initialized : 0;
    mine >>= at % kGranuleBytes;
    if (!(mine & 1))
      return at;
    at += __builtin_ctz(~mine);
  }
  return end;
}

void Sanitizer::checkInitialized(const Access &access) {
  uint64_t end = access.begin + access.bytes;
  uint64_t missing = findMissing(access.begin, access.bytes);
  if (missing < end && !hasTurn && launch) {
    Poison before = poison;
    takeTurn(access.thread, access.site);
    poison = before;
    missing = findMissing(access.begin, access.bytes);
  }
  for (; missing < end; missing = findMissing(missing + 1, end - missing - 1)) {
    uint64_t index = missing / kGranuleBytes;
    uint16_t mask = 1u << missing % kGranuleBytes;
    if (!access.poisons)
      fail(access, index, mask, "are uninitialized");
    notePoison(access, index, mask);
    if (access.unwritten)
      access.unwritten->bytes.push_back(
          {access.numRange, missing - access.begin});
  }
}

/// Fails unless there is memory for an access; says whether all of it counts as
/// written.
bool Sanitizer::checkPlace(const Thread &thread, const KVCacheSite *site,
                           const void *pointer, int64_t bytes,
                           uint32_t flags) const {
  bool isInitialized;
  const Memory &memory = Memory::get();
  if (!memory.mayAccess(pointer, bytes, flags, isInitialized))
    cluster.fail(thread, site, memory.describeWrong(pointer, bytes, flags));
  return isInitialized;
}

/// Checks that a load of invariant memory reads nothing that this block has
/// written.
void Sanitizer::checkInvariant(const Access &access, uint64_t index,
                               uint16_t mask) const {
  auto isWritten = [](const PastAccess &) { return false; };
  const Granule *granule = global.find(index);
  uint16_t written =
      granule && granule->run == run ? granule->initialized & mask : 0;
  if (!written && hasTurn) {
    PastAccess read = {};
    read.mask = mask;
    if (const PastAccess *past =
            launch->accesses.findConflict(index, read, isWritten))
      written = past->mask & mask;
  }
  if (written)
    fail(access, index, written,
         "the kernel writes, as memory that is constant during the kernel "
         "(ld.global.nc)");
  if (!launch || !launch->getEarlier())
    return;
  // The launch before may write it while this kernel runs.
  PastAccess read = {};
  read.mask = mask;
  const PastAccess *past = launch->getEarlier()->findConflict(
      index, read, [&](const PastAccess &past) {
        return !launch->isOfLaunchBefore(past.block);
      });
  if (past)
    fail(access, index, past->mask & mask,
         launch->describeCluster(past->block) +
             " writes, as memory that is constant during the kernel "
             "(ld.global.nc)");
}

Poison Sanitizer::accessGlobal(Thread &thread, const KVCacheSite *site,
                               const void *pointer, int64_t bytes,
                               uint32_t flags) {
  if (!isOn)
    return {};
  checkRewrites();
  bool isInitialized = checkPlace(thread, site, pointer, bytes, flags);
  bool reads = flags & KVCacheAccessRead;
  bool matters = launch && ((flags & KVCacheAccessWrite) ||
                            launch->mayChange(getAddress(pointer)));
  if (!matters && (isInitialized || !reads))
    return {};
  Access access{thread,
                site,
                getAddress(pointer),
                static_cast<uint64_t>(bytes),
                getKind(flags),
                reads,
                /*isAsync=*/false,
                std::nullopt};
  access.isGlobal = true;
  access.rewritten = static_cast<const char *>(pointer);
  access.isOfDevice = isAtomic(access.kind) && (flags & KVCacheAccessDevice);
  access.isOfCluster = getOrdering(flags).isOfCluster;
  access.isVolatile = flags & KVCacheAccessVolatile;
  access.isInvariant = flags & KVCacheAccessInvariant;
  access.poisons = flags & KVCacheAccessPoisons;
  poison = {};
  if (reads && !isInitialized)
    checkInitialized(access);
  Poison read = poison;
  if (matters)
    touch(access);
  return read;
}

Sanitizer::Copy
Sanitizer::issueGlobalWrite(Thread &thread, const KVCacheSite *site,
                            const std::vector<GlobalRange> &ranges,
                            Proxy proxy) {
  return isOn ? issueGlobal(thread, site, ranges, proxy, nullptr) : kNoCopy;
}

Sanitizer::Copy
Sanitizer::issueGlobalRead(Thread &thread, const KVCacheSite *site,
                           const std::vector<GlobalRange> &ranges, Proxy proxy,
                           Unwritten &unwritten) {
  return isOn ? issueGlobal(thread, site, ranges, proxy, &unwritten) : kNoCopy;
}

/// Reads if there is `unwritten`.
Sanitizer::Copy Sanitizer::issueGlobal(Thread &thread, const KVCacheSite *site,
                                       const std::vector<GlobalRange> &ranges,
                                       Proxy proxy, Unwritten *unwritten) {
  checkRewrites();
  bool writes = !unwritten;
  Copy copy = kNoCopy;
  poison = {};
  for (size_t i = 0; i < ranges.size(); ++i) {
    const GlobalRange &range = ranges[i];
    bool isInitialized =
        checkPlace(thread, site, range.begin, range.bytes,
                   writes ? KVCacheAccessWrite : KVCacheAccessRead);
    Access access{thread,
                  site,
                  getAddress(range.begin),
                  range.bytes,
                  writes ? Kind::Write : Kind::Read,
                  /*reads=*/!writes,
                  proxy == Proxy::Async,
                  std::nullopt};
    access.isGlobal = access.poisons = true;
    access.unwritten = unwritten;
    access.numRange = i;
    if (!writes && !isInitialized)
      checkInitialized(access);
    if (!launch || (!writes && !launch->mayChange(access.begin)))
      continue;
    if (copy == kNoCopy)
      copy = addCopy({site,
                      access.begin,
                      access.bytes,
                      thread.index,
                      proxy,
                      /*isGlobal=*/true,
                      writes,
                      /*isInFlight=*/true,
                      0,
                      {}});
    access.copy = copy;
    touch(access);
  }
  if (unwritten)
    unwritten->origin = poison.origin;
  return copy;
}

//===----------------------------------------------------------------------===//
// Stores of what is there
//===----------------------------------------------------------------------===//

bool Sanitizer::isRewrite(const Access &access, const Cell &cell,
                          Kind kind) const {
  return access.rewritten && access.kind == Kind::Write &&
         kind == Kind::Write && !access.copy && !cell.isCopy() &&
         cluster.threads[cell.who].block == access.thread.block;
}

void Sanitizer::noteRewrite(const Access &access, const Cell &before,
                            uint64_t index, uint16_t mask) {
  Rewrite &rewrite =
      rewrites.emplace_back(Rewrite{access, before, index, mask, {}});
  std::memcpy(rewrite.bytes.data(), rewrite.data(), rewrite.size());
}

/// The stores have happened since they were announced.
void Sanitizer::finishRewrites() {
  auto changed = std::find_if(
      rewrites.begin(), rewrites.end(), [](const Rewrite &rewrite) {
        return std::memcmp(rewrite.data(), rewrite.bytes.data(),
                           rewrite.size()) != 0;
      });
  if (changed != rewrites.end())
    fail(changed->access, changed->index, changed->mask,
         describeConflict(changed->access, changed->before, Kind::Write));
  rewrites.clear();
}

//===----------------------------------------------------------------------===//
// Blocks that have ended
//===----------------------------------------------------------------------===//

std::string Sanitizer::describePast(const PastAccess &past,
                                    bool isAtomic) const {
  bool isEarlier = past.block < launch->getFirstBlock();
  bool isOfOne = cluster.numBlocks() == 1;
  std::string text =
      launch->describeCluster(past.block) + " " +
      getVerb(getKind(past.isWrite, past.isAtomic), past.isVolatile) + " in " +
      Block::describe(past.getSite());
  if (isEarlier)
    return text + ", a launch that may still run: the thread has not waited "
                  "for it (griddepcontrol.wait)";
  if (past.isAtomic && isAtomic)
    return text + ", and one of the two only has the scope of its own " +
           (isOfOne ? "block" : "block or cluster") + " (a race)";
  return text + " without order between the " +
         (isOfOne ? "blocks" : "clusters") + " (a race)";
}

void Sanitizer::checkPast(const Access &access, uint64_t index, uint16_t mask,
                          const PastAccesses &accesses) const {
  PastAccess mine = {};
  mine.mask = mask;
  mine.isWrite = isWrite(access.kind);
  mine.isAtomic = isAtomic(access.kind);
  mine.isOfDevice = access.isOfDevice;
  const PastAccess *past =
      accesses.findConflict(index, mine, [&](const PastAccess &past) {
        // The block's own order does not need the launch.
        if (past.block == getId())
          return true;
        bool areAtomic = past.isAtomic && mine.isAtomic;
        return (!areAtomic || past.block < launch->getFirstBlock()) &&
               order.isAfterOther(access.thread.index, past.block, past.who,
                                  past.clock);
      });
  if (past)
    fail(access, index, past->mask & mask, describePast(*past, mine.isAtomic));
  if (!access.isAsync)
    return;
  past = accesses.findConflict(index, mine, [&](const PastAccess &past) {
    return past.block == getId() || !past.isWrite || past.isAsync ||
           order.hasFencedOther(access.thread.index, past.block, past.who,
                                past.clock);
  });
  if (past)
    fail(access, index, past->mask & mask,
         launch->describeCluster(past->block) + " writes in " +
             Block::describe(past->getSite()) +
             " without a proxy fence between them (fence.proxy.async)");
}

PastAccess Sanitizer::getPast(const Cell &cell, bool isAtomic) const {
  PastAccess past = {};
  past.block = getId();
  past.clock = cell.clock;
  past.who = cell.who;
  past.mask = cell.mask;
  past.site = cell.site;
  past.isWrite = cell.isWrite;
  past.isAtomic = isAtomic;
  past.isOfDevice = cell.isOfDevice;
  past.isVolatile = cell.isVolatile;
  if (!cell.isCopy())
    return past;
  const CopyState &copy = copies[cell.clock];
  past.clock = copy.end.event.clock;
  past.who = copy.end.event.who;
  past.site = reinterpret_cast<uintptr_t>(copy.site);
  past.isAsync = copy.proxy == Proxy::Async;
  return past;
}

/// Calls `visit` with each cell of a granule and whether it is atomic.
template <typename Visitor>
static void forEachCell(const Granule &granule, Visitor visit) {
  granule.writes.forEach([&](const Cell &cell) { visit(cell, false); });
  granule.reads.forEach([&](const Cell &cell) { visit(cell, false); });
  granule.atomics.forEach([&](const Cell &cell) { visit(cell, true); });
}

/// Calls `visit` with each granule of global memory that the block has touched,
/// in the order in which it did, by pages.
template <typename Visitor> void Sanitizer::forEachGlobal(Visitor visit) const {
  for (size_t place = 0; place < global.size(); ++place) {
    const GranuleTable::Page &page = global.getPage(place);
    for (uint32_t i = 0; i < GranuleTable::kPageGranules; ++i)
      if (page.granules[i].run == run)
        visit(page.number * GranuleTable::kPageGranules + i, page.granules[i]);
  }
}

/// Finds accesses of this block so far that conflict with other blocks.
template <typename Predicate>
std::optional<std::string> Sanitizer::findConflict(const PastAccesses &accesses,
                                                   Predicate isKnown) const {
  std::optional<std::string> error;
  auto visit = [&](uint64_t index, const Cell &cell, bool isAtomic) {
    if (error)
      return;
    PastAccess mine = getPast(cell, isAtomic);
    const PastAccess *past = accesses.findConflict(index, mine, isKnown);
    if (!past)
      return;
    uint32_t thread = cell.isCopy() ? copies[cell.clock].issuer : cell.who;
    Access access{cluster.threads[thread],
                  mine.getSite(),
                  index * kGranuleBytes + __builtin_ctz(cell.mask),
                  static_cast<uint64_t>(__builtin_popcount(cell.mask)),
                  getKind(cell.isWrite, isAtomic),
                  /*reads=*/false,
                  /*isAsync=*/false,
                  std::nullopt};
    access.isGlobal = true;
    access.isVolatile = cell.isVolatile;
    error = describe(access, index, past->mask & mine.mask,
                     describePast(*past, isAtomic));
  };
  forEachGlobal([&](uint64_t index, const Granule &granule) {
    if (accesses.hasAny(index))
      forEachCell(granule, [&](const Cell &cell, bool isAtomic) {
        visit(index, cell, isAtomic);
      });
  });
  return error;
}

/// Until a block has its turn, it has acquired nothing of others: any
/// conflict with a block before it is a race.
std::optional<std::string> Sanitizer::findConflict() const {
  return findConflict(launch->accesses,
                      [](const PastAccess &) { return false; });
}

std::optional<std::string> Sanitizer::checkAhead() {
  if (!isOn || !launch || !std::exchange(isAhead, false) ||
      !launch->getEarlier())
    return std::nullopt;
  return findConflict(*launch->getEarlier(), [&](const PastAccess &past) {
    return launch->getClocksAtStart().includes(past.block, past.who,
                                               past.clock);
  });
}

/// Calls `visit` with the first bit and the length of each run of set bits.
template <typename Visitor>
static void forEachRun(uint32_t mask, Visitor visit) {
  while (mask) {
    uint32_t first = __builtin_ctz(mask);
    uint32_t length = __builtin_ctz(~(mask >> first));
    visit(first, length);
    mask &= ~(((1u << length) - 1) << first);
  }
}

/// All blocks of the launch before come before this one.
void Sanitizer::takeTurn(const Thread &thread, const KVCacheSite *site) {
  if (!launch || (hasTurn && !launch->isTogether()))
    return;
  cluster.waitForEarlier(thread, site);
  giveWay(thread);
  if (hasTurn)
    return;
  if (!launch->waitForTurn(number))
    cluster.fail("a block before this one has failed");
  hasTurn = true;
  if (std::optional<std::string> error = findConflict())
    cluster.fail(*error);
}

void Sanitizer::giveWay(const Thread &thread) {
  if (!isOn || !launch || !launch->isTogether())
    return;
  tellLaunch();
  cluster.giveWay(cluster.threads[thread.index]);
}

/// A copy is published when it has ended.
bool Sanitizer::isPublished(const Cell &cell) const {
  if (published.empty())
    return false;
  if (!cell.isCopy())
    return cell.clock < published[cell.who];
  const CopyState &copy = copies[cell.clock];
  return copy.isInFlight || copy.isPublished;
}

/// Publishes to other blocks all accesses that are not published yet.
void Sanitizer::tellLaunch() {
  forEachGlobal([&](uint64_t index, const Granule &granule) {
    forEachCell(granule, [&](const Cell &cell, bool isAtomic) {
      if (!isPublished(cell))
        launch->accesses.add(index, getPast(cell, isAtomic));
    });
    forEachRun(granule.initialized, [&](uint32_t first, uint32_t bytes) {
      Memory::get().noteWrite(index * kGranuleBytes + first, bytes);
    });
  });
  for (size_t thread = 0; thread < published.size(); ++thread)
    published[thread] = order.advance(thread);
  for (CopyState &copy : copies)
    copy.isPublished = !copy.isInFlight;
}

std::optional<std::string> Sanitizer::finish(bool hasFailed) {
  if (!isOn || !launch)
    return std::nullopt;
  if (std::optional<std::string> error = checkAhead())
    return error;
  if (!hasTurn) {
    if (!launch->waitForTurn(number))
      return std::nullopt;
    hasTurn = true;
    if (std::optional<std::string> error = findConflict())
      return error;
  }
  if (!hasFailed)
    tellLaunch();
  return std::nullopt;
}
