//===- CopyAccesses.cpp - Copies that the sanitizer checks ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <algorithm>
#include <cstring>

using namespace mlir::kvcache::emulator;

Sanitizer::Copy Sanitizer::addCopy(const CopyState &state) {
  if (freeCopies.empty()) {
    copies.push_back(state);
    return copies.size() - 1;
  }
  Copy copy = freeCopies.back();
  freeCopies.pop_back();
  copies[copy] = state;
  return copy;
}

Sanitizer::Copy Sanitizer::issue(Thread &thread, const KVCacheSite *site,
                                 SharedRange range, Proxy proxy, Kind kind,
                                 const std::vector<char> &isUsed) {
  Copy copy = addCopy({site,
                       range.offset,
                       range.bytes,
                       thread.index,
                       proxy,
                       /*isGlobal=*/false,
                       kind == Kind::Write,
                       /*isInFlight=*/true,
                       0,
                       {}});
  Access access{thread,
                site,
                range.offset,
                range.bytes,
                kind,
                /*reads=*/kind == Kind::Read && isUsed.empty(),
                proxy == Proxy::Async,
                copy};
  checkUsed(access, isUsed);
  touch(access);
  return copy;
}

Sanitizer::Copy Sanitizer::issueWrite(Thread &thread, const KVCacheSite *site,
                                      SharedRange range, Proxy proxy) {
  if (!isOn)
    return 0;
  hasCopies = true;
  Copy copy = issue(thread, site, range, proxy, Kind::Write);
  // A read that comes too early gets NaNs.
  std::memset(cluster.shared + range.offset, 0xff, range.bytes);
  return copy;
}

Sanitizer::Copy Sanitizer::issueRead(Thread &thread, const KVCacheSite *site,
                                     SharedRange range, Proxy proxy,
                                     const std::vector<char> &isUsed) {
  return isOn ? issue(thread, site, range, proxy, Kind::Read, isUsed) : 0;
}

/// Checks an access that another thread has checked and noted as well.
void Sanitizer::checkOrder(const Access &access) {
  forEachGranule(access.begin, access.bytes,
                 [&](uint64_t index, uint16_t mask) {
                   checkGranule(access, getGranule(index), index, mask);
                 });
}

/// The first lane notes the reads. The second one is not ordered after the
/// accesses of the first since their synchronization, and most others are
/// ordered after as much as the first.
Sanitizer::Copy Sanitizer::issueUnitReads(const std::vector<Thread *> &lanes,
                                          const KVCacheSite *site,
                                          const std::vector<uint32_t> &units,
                                          std::vector<uint16_t> &unwritten,
                                          uint32_t &origin) {
  if (!isOn)
    return kNoCopy;
  checkRewrites();
  Thread &first = *lanes.front();
  Copy copy = addCopy({site,
                       units.front(),
                       units.size() * kGranuleBytes,
                       first.index,
                       Proxy::Async,
                       /*isGlobal=*/false,
                       /*isWrite=*/false,
                       /*isInFlight=*/true,
                       0,
                       {}});
  auto getAccess = [&](const Thread &lane, uint32_t unit) {
    return Access{lane,
                  site,
                  unit,
                  kGranuleBytes,
                  Kind::Read,
                  /*reads=*/false,
                  /*isAsync=*/true,
                  std::nullopt};
  };
  for (size_t i = 0; i < lanes.size(); ++i)
    if (i == 1 || (i > 1 && !order.isAfterAll(lanes[i]->index, first.index)))
      for (uint32_t unit : units)
        checkOrder(getAccess(*lanes[i], unit));
  for (size_t i = 0; i < units.size(); ++i) {
    Access access = getAccess(first, units[i]);
    access.copy = copy;
    access.reads = access.poisons = true;
    poison = {};
    touch(access);
    if (!poison.origin)
      continue;
    origin = poison.origin;
    unwritten.resize(units.size());
    unwritten[i] = static_cast<uint16_t>(poison.mask);
  }
  return copy;
}

Order::End Sanitizer::finish(Copy copy, Order::End end) {
  if (copy == kNoCopy)
    return end;
  copies[copy].isInFlight = false;
  copies[copy].end = end;
  if (copies[copy].numCells == 0)
    freeCopies.push_back(copy);
  return end;
}

Order::End Sanitizer::complete(Copy copy, ReleaseClock &into) {
  if (!isOn || copy == kNoCopy)
    return {};
  Order::End end = order.complete(into);
  if (copies[copy].proxy == Proxy::Generic)
    order.noteCopy(copies[copy].issuer, end);
  return finish(copy, end);
}

Order::End Sanitizer::complete(Copy copy, Thread &thread) {
  if (!isOn || copy == kNoCopy)
    return {};
  bool isByThread = copies[copy].proxy == Proxy::Generic;
  return finish(copy, order.complete(thread.index, isByThread));
}

void Sanitizer::complete(Copy copy, const Order::End &end) {
  if (isOn)
    finish(copy, end);
}

Clocks Sanitizer::getCopies(const Thread &thread) {
  return isOn ? order.getCopies(thread.index) : Clocks();
}

Clocks Sanitizer::getSeenCopies(const Thread &thread) const {
  return isOn ? order.getSeenCopies(thread.index) : Clocks();
}

void Sanitizer::releaseCopies(const Clocks &ends, ReleaseClock &into) {
  if (isOn)
    order.releaseCopies(ends, into);
}

void Sanitizer::releaseCopy(const Order::End &end, ReleaseClock &into) {
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
  forEachGranule(offset, kBarrierBytes, [&](uint64_t index, uint16_t mask) {
    getGranule(index).barrier |= mask;
  });
}

/// Records an access to an mbarrier. The bytes of an invalidated one are
/// uninitialized (PTX ISA, "mbarrier.inval").
void Sanitizer::useBarrier(const Thread &thread, const KVCacheSite *site,
                           uint32_t offset) {
  if (!isOn)
    return;
  Access access{thread,
                site,
                offset,
                kBarrierBytes,
                Kind::AtomicWrite,
                /*reads=*/false,
                /*isAsync=*/false,
                std::nullopt};
  forEachGranule(offset, kBarrierBytes, [&](uint64_t index, uint16_t mask) {
    checkList(access, getGranule(index).writes, Kind::Write, index, mask);
  });
}

void Sanitizer::removeBarrier(Thread &thread, const KVCacheSite *site,
                              uint32_t offset) {
  if (!isOn)
    return;
  SharedRange range{offset, kBarrierBytes};
  forEachGranule(offset, kBarrierBytes, [&](uint64_t index, uint16_t mask) {
    getGranule(index).barrier &= ~mask;
  });
  access(thread, site, range, KVCacheAccessWrite);
  forEachGranule(offset, kBarrierBytes, [&](uint64_t index, uint16_t mask) {
    getGranule(index).initialized &= ~mask;
  });
}
