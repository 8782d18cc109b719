//===- LaunchShadow.cpp - What blocks of a launch have accessed -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchShadow.h"
#include "Grid.h"
#include "Memory.h"
#include "kvcache/TMA/Encoding.h"

#include <algorithm>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// What the kernel may write
//===----------------------------------------------------------------------===//

void LaunchShadow::addChanged(uintptr_t address) {
  if (auto range = Memory::get().findRange(address))
    changed.push_back(*range);
}

LaunchShadow::LaunchShadow(const Grid &grid, const LaunchShadow *before) {
  const KVCacheEmulatedKernel &kernel = *grid.kernel;
  changesAnything = kernel.changesAnything;
  startsDependents = kernel.startsDependents;
  if (before) {
    changed = before->changed;
    changesAnything |= before->changesAnything;
    launches = before->launches;
    const Numbers &last = launches.back();
    firstBlock = last.firstBlock + last.grid.numClusters();
    clocksAtStart = before->clocksOfDependents;
  }
  launches.push_back({firstBlock, grid});
  for (int64_t i = 0; i < kernel.numParams; ++i) {
    if (!kernel.isParamChanged[i])
      continue;
    if (kernel.paramBytes[i] == sizeof(uintptr_t))
      addChanged(*static_cast<const uintptr_t *>(grid.params[i]));
    else if (auto descriptor = tma::decode(grid.params[i]))
      addChanged(descriptor->base);
  }
  for (int64_t i = 0; i < grid.module->numGlobals; ++i)
    if (!grid.module->globals[i].isConstant)
      addChanged(reinterpret_cast<uintptr_t>(grid.module->globals[i].address));
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

bool LaunchShadow::waitForTurn(uint64_t block) {
  std::unique_lock<std::mutex> lock(mutex);
  isNext.wait(lock, [&] { return turn == block; });
  return block <= firstFailed;
}

void LaunchShadow::endTurn(uint64_t block) {
  std::unique_lock<std::mutex> lock(mutex);
  isNext.wait(lock, [&] { return turn == block; });
  ++turn;
  isNext.notify_all();
}

void LaunchShadow::stop(uint64_t block) {
  std::lock_guard<std::mutex> lock(mutex);
  firstFailed = std::min(firstFailed, block);
}

//===----------------------------------------------------------------------===//
// The launch before
//===----------------------------------------------------------------------===//

/// The ones before that, it has taken itself.
void LaunchShadow::absorb(LaunchShadow &&before) {
  earlier = before.earlier ? std::move(*before.earlier) : PastAccesses();
  earlier->add(before.accesses);
  released = std::move(before.released);
}

void LaunchShadow::addStarting(const OtherBlocks &released) {
  std::lock_guard<std::mutex> lock(mutex);
  clocksOfDependents.join(released);
}

std::string LaunchShadow::describeCluster(uint32_t number) const {
  auto launch = std::find_if(
      launches.rbegin(), launches.rend(),
      [&](const Numbers &launch) { return launch.firstBlock <= number; });
  std::string text = launch->grid.describeCluster(number - launch->firstBlock);
  return launch == launches.rbegin() ? text : text + " of " + launch->grid.name;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Takes bytes away from what is older than a write of them.
void PastAccesses::strip(uint32_t &head, uint16_t mask) {
  for (uint32_t *link = &head; *link != kNone;) {
    PastAccess &access = accesses[*link];
    access.mask &= ~mask;
    if (access.mask)
      link = &access.next;
    else
      *link = access.next;
  }
}

void PastAccesses::add(uint64_t granule, const PastAccess &access) {
  auto [place, isNew] =
      pages.try_emplace(granule / GranuleTable::kPageGranules);
  Page &page = place->second;
  if (isNew)
    page.fill(kNone);
  uint32_t &head = page[granule % GranuleTable::kPageGranules];
  if (access.isWrite && !access.isAtomic)
    strip(head, access.mask);
  PastAccess *newest = nullptr;
  for (uint32_t i = head; i != kNone; i = accesses[i].next) {
    PastAccess &old = accesses[i];
    if ((old.mask & ~access.mask) || old.isWrite != access.isWrite ||
        old.isAtomic != access.isAtomic || old.isOfDevice != access.isOfDevice)
      continue;
    if (newest) {
      uint32_t next = newest->next;
      *newest = access;
      newest->next = next;
      return;
    }
    newest = &old;
  }
  accesses.push_back(access);
  accesses.back().next = head;
  head = accesses.size() - 1;
}

void PastAccesses::add(const PastAccesses &later) {
  std::vector<const PastAccess *> granuleAccesses;
  for (const auto &[number, page] : later.pages)
    for (uint32_t i = 0; i < GranuleTable::kPageGranules; ++i) {
      granuleAccesses.clear();
      for (uint32_t next = page[i]; next != kNone;
           next = later.accesses[next].next)
        granuleAccesses.push_back(&later.accesses[next]);
      // The newest comes first there.
      for (auto past = granuleAccesses.rbegin(); past != granuleAccesses.rend();
           ++past)
        add(number * GranuleTable::kPageGranules + i, **past);
    }
}
