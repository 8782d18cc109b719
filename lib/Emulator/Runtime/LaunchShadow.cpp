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

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// What the kernel may write
//===----------------------------------------------------------------------===//

void LaunchShadow::addChanged(uintptr_t address) {
  if (auto range = Memory::get().findRange(address))
    changed.push_back(*range);
}

LaunchShadow::LaunchShadow(const Grid &grid) {
  const KVCacheEmulatedKernel &kernel = *grid.kernel;
  changesAnything = kernel.changesAnything;
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
// Accesses
//===----------------------------------------------------------------------===//

const LaunchShadow::Page *LaunchShadow::findPage(uint64_t number) const {
  if (number == lastNumber)
    return lastPage;
  auto found = pages.find(number);
  lastNumber = number;
  return lastPage = found == pages.end() ? nullptr : &found->second;
}

LaunchShadow::Page &LaunchShadow::getPage(uint64_t number) {
  if (const Page *page = findPage(number))
    return const_cast<Page &>(*page);
  Page &page = pages[number];
  page.fill(kNone);
  lastPage = &page;
  return page;
}

/// Takes bytes away from what is older than a write of them.
void LaunchShadow::strip(uint32_t &head, uint16_t mask) {
  for (uint32_t *link = &head; *link != kNone;) {
    PastAccess &access = accesses[*link];
    access.mask &= ~mask;
    if (access.mask)
      link = &access.next;
    else
      *link = access.next;
  }
}

void LaunchShadow::add(uint64_t granule, const PastAccess &access) {
  uint32_t &head = getPage(
      granule /
      GranuleTable::kPageGranules)[granule % GranuleTable::kPageGranules];
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
