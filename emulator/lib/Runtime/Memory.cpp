//===- Memory.cpp - Global memory that kernels may access -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"
#include "kvcache/Emulator/Emulator.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir::kvcache::emulator;

static uintptr_t getAddress(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

Memory &Memory::get() {
  // Never destroyed: a launch may be running when the process ends.
  static Memory &memory = *new Memory;
  return memory;
}

//===----------------------------------------------------------------------===//
// Address space
//===----------------------------------------------------------------------===//

/// Allocations are aligned to this, and to no more, as those of CUDA promise.
static constexpr uint64_t kAlignment = 256;
/// The least distance of two allocations.
static constexpr uint64_t kGapBytes = 1 << 20;
/// The most bytes of an allocation that are filled with NaNs of every format.
static constexpr uint64_t kMaxPoisonedBytes = 1 << 20;
static constexpr uint64_t kMaxBytes = uint64_t{1} << 46;

static uint64_t roundUpToPages(uint64_t bytes) {
  const uint64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

/// After an allocation, as many bytes again stay free, so that an
/// access that is far out of bounds doesn't find another one.
static uint64_t getReservedBytes(uint64_t bytes) {
  return roundUpToPages(kAlignment + 2 * bytes + kGapBytes);
}

static char *reserve(uint64_t bytes) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory =
      mmap(nullptr, getReservedBytes(bytes), PROT_NONE, flags, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  if (mprotect(memory, roundUpToPages(kAlignment + bytes),
               PROT_READ | PROT_WRITE)) {
    munmap(memory, getReservedBytes(bytes));
    return nullptr;
  }
  return static_cast<char *>(memory) + kAlignment;
}

static void giveBack(uintptr_t begin, uint64_t bytes) {
  munmap(reinterpret_cast<void *>(begin - kAlignment), getReservedBytes(bytes));
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

void *Memory::allocate(int64_t bytes, bool isManaged) {
  if (bytes < 0 || static_cast<uint64_t>(bytes) > kMaxBytes)
    return nullptr;
  char *pointer = reserve(bytes);
  if (!pointer)
    return nullptr;
  uintptr_t begin = getAddress(pointer), size = bytes;
  if (!isManaged) {
    shadow.forget(begin, size);
    if (size <= kMaxPoisonedBytes)
      std::memset(pointer, 0xff, size);
  }
  std::unique_lock lock(mutex);
  allocations[begin] = {begin, begin + size, 0, isManaged, false};
  ++version;
  return pointer;
}

bool Memory::free(void *pointer) {
  std::unique_lock lock(mutex);
  auto found = allocations.find(getAddress(pointer));
  if (found == allocations.end())
    return false;
  Range range = found->second;
  allocations.erase(found);
  ++version;
  shadow.forget(range.begin, range.size());
  keepFreed(range);
  return true;
}

/// Accesses of it are errors that name it, until it is allocated again.
void Memory::keepFreed(const Range &range) {
  constexpr size_t most = 256;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  mmap(reinterpret_cast<void *>(range.begin - kAlignment),
       roundUpToPages(kAlignment + range.size()), PROT_NONE, flags, -1, 0);
  freed.push_back(range);
  if (freed.size() <= most)
    return;
  giveBack(freed.front().begin, freed.front().size());
  freed.pop_front();
}

void Memory::add(const void *pointer, int64_t bytes, bool isInitialized,
                 bool isConstant) {
  uintptr_t begin = getAddress(pointer),
            end = begin + std::max<int64_t>(bytes, 0);
  std::unique_lock lock(mutex);
  auto [found, isNew] = registered.try_emplace(
      begin, Range{begin, end, 0, isInitialized, isConstant});
  Range &range = found->second;
  range.end = std::max(range.end, end);
  range.isInitialized |= isInitialized;
  range.isConstant &= isConstant;
  ++range.count;
  largestRegistered = std::max(largestRegistered, range.size());
  if (isNew && !isInitialized)
    shadow.forget(begin, range.size());
  ++version;
}

void Memory::remove(const void *pointer) {
  std::unique_lock lock(mutex);
  auto found = registered.find(getAddress(pointer));
  if (found == registered.end() || --found->second.count > 0)
    return;
  registered.erase(found);
  ++version;
}

/// Allocations don't overlap.
const Memory::Range *Memory::findAllocation(uintptr_t address,
                                            uint64_t bytes) const {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin())
    return nullptr;
  const Range &range = std::prev(next)->second;
  return range.contains(address, bytes) ? &range : nullptr;
}

/// Finds the allocation of an address; among several, one that may be written.
const Memory::Range *Memory::findRegistered(uintptr_t address,
                                            uint64_t bytes) const {
  const Range *found = nullptr;
  auto next = registered.upper_bound(address);
  while (next != registered.begin()) {
    const Range &range = (--next)->second;
    if (range.contains(address, bytes)) {
      found = &range;
      if (!range.isConstant)
        break;
    }
    if (address - range.begin >= largestRegistered)
      break;
  }
  return found;
}

const Memory::Range *Memory::find(uintptr_t address, uint64_t bytes) const {
  const Range *range = findAllocation(address, bytes);
  return range ? range : findRegistered(address, bytes);
}

std::optional<Memory::Range> Memory::lookup(uintptr_t address,
                                            uint64_t bytes) const {
  std::shared_lock lock(mutex);
  const Range *range = find(address, bytes);
  return range ? std::optional(*range) : std::nullopt;
}

/// The ranges that a thread of the host has used last.
struct Memory::RecentRanges {
  static constexpr uint32_t kSize = 8;

  uint64_t version = 0;
  uint32_t next = 0;
  Range ranges[kSize];
};

/// Out of line, for which most accesses need no frame then.
[[gnu::noinline]] const Memory::Range *
Memory::lookupAndKeep(RecentRanges &recent, uintptr_t address,
                      uint64_t bytes) const {
  uint64_t current = version.load(std::memory_order_acquire);
  if (recent.version != current) {
    std::fill(std::begin(recent.ranges), std::end(recent.ranges), Range());
    recent.version = current;
  }
  std::optional<Range> found = lookup(address, bytes);
  if (!found)
    return nullptr;
  Range &range = recent.ranges[recent.next++ % RecentRanges::kSize];
  range = *found;
  return &range;
}

/// Like `lookup`, mostly without a lock. Null if there is none.
const Memory::Range *Memory::lookupRecent(uintptr_t address, uint64_t bytes,
                                          bool writes) const {
  static thread_local RecentRanges recent;
  RecentRanges &mine = recent;
  if (mine.version == version.load(std::memory_order_acquire))
    for (const Range &range : mine.ranges)
      if (range.contains(address, bytes) && !(writes && range.isConstant))
        return &range;
  return lookupAndKeep(mine, address, bytes);
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

void Memory::noteHostWrite(void *pointer, int64_t bytes) {
  uintptr_t address = getAddress(pointer);
  std::unique_lock lock(mutex);
  auto *range = const_cast<Range *>(find(address, bytes));
  if (!range || range->isInitialized)
    return;
  if (range->size() > static_cast<uint64_t>(bytes)) {
    shadow.write(address, bytes);
    return;
  }
  range->isInitialized = true;
  ++version;
}

void Memory::noteHostCopy(void *to, const void *from, int64_t bytes) {
  std::optional<Range> source = lookup(getAddress(from), bytes);
  if (!source || source->isInitialized)
    return noteHostWrite(to, bytes);
  std::optional<Range> destination = lookup(getAddress(to), bytes);
  if (destination && !destination->isInitialized)
    shadow.copy(getAddress(to), getAddress(from), bytes);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string describeAccess(uint64_t bytes, uint32_t flags) {
  bool reads = flags & KVCacheAccessRead, writes = flags & KVCacheAccessWrite;
  return std::string(reads && writes ? "updates "
                     : writes        ? "writes "
                                     : "reads ") +
         std::to_string(bytes) + " bytes at ";
}

static std::string describePlace(int64_t offset, uint64_t size,
                                 bool isConstant = false) {
  return "byte " + std::to_string(offset) + " of " +
         (isConstant ? "constant memory" : "an allocation") + " of " +
         std::to_string(size) + " bytes";
}

const Memory::Range *Memory::findFreed(uintptr_t address) const {
  // The last one that was there.
  auto found =
      std::find_if(freed.rbegin(), freed.rend(), [&](const Range &range) {
        return range.contains(address, 0);
      });
  return found == freed.rend() ? nullptr : &*found;
}

/// The range that an access that is in none was probably meant for.
const Memory::Range *Memory::findNear(uintptr_t address) const {
  constexpr uint64_t near = 4096;
  const Range *best = nullptr;
  for (const Ranges *ranges : {&registered, &allocations}) {
    auto next = ranges->upper_bound(address);
    if (next != ranges->end() && next->second.begin - address <= near)
      best = &next->second;
    if (next == ranges->begin())
      continue;
    const Range &range = std::prev(next)->second;
    uint64_t reach = ranges == &registered ? near : range.size() + kGapBytes;
    if (address < range.end || address - range.end < reach)
      best = &range;
  }
  return best;
}

std::string Memory::describeOutside(uintptr_t address, uint64_t bytes,
                                    uint32_t flags) const {
  std::shared_lock lock(mutex);
  std::string text = describeAccess(bytes, flags);
  if (const Range *range = findFreed(address))
    return text + describePlace(address - range->begin, range->size()) +
           ", which has been freed";
  if (const Range *range = findNear(address))
    return text + describePlace(address - range->begin, range->size());
  std::ostringstream os;
  os << "0x" << std::hex << address;
  return text + os.str() + ", which is no memory of the device";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::optional<std::pair<uintptr_t, uintptr_t>>
Memory::findRange(uintptr_t address) const {
  std::optional<Range> range = lookup(address, 0);
  return range ? std::optional(std::pair(range->begin, range->end))
               : std::nullopt;
}

std::string Memory::describe(uintptr_t address) const {
  std::optional<Range> range = lookup(address, 1);
  return range ? describePlace(address - range->begin, range->size()) : "";
}

std::string Memory::describeByte(uintptr_t address, uintptr_t around) const {
  std::optional<Range> range = lookup(around, 1);
  return "byte " + std::to_string(range ? address - range->begin : address);
}

bool Memory::mayAccess(const void *pointer, int64_t bytes, uint32_t flags,
                       bool &isInitialized) const {
  isInitialized = true;
  if (bytes == 0)
    return true;
  bool writes = flags & KVCacheAccessWrite;
  const Range *range = lookupRecent(getAddress(pointer), bytes, writes);
  if (!range || (writes && range->isConstant))
    return false;
  isInitialized = range->isInitialized;
  return true;
}

std::string Memory::describeWrong(const void *pointer, int64_t bytes,
                                  uint32_t flags) const {
  uintptr_t address = getAddress(pointer);
  std::optional<Range> range = lookup(address, bytes);
  if (!range)
    return describeOutside(address, bytes, flags);
  return describeAccess(bytes, flags) + describePlace(address - range->begin,
                                                      range->size(),
                                                      /*isConstant=*/true);
}

void Memory::noteWrite(uintptr_t address, uint64_t bytes) {
  const Range *range = lookupRecent(address, bytes, /*writes=*/true);
  if (!range || !range->isInitialized)
    shadow.write(address, bytes);
}

//===----------------------------------------------------------------------===//
// Memory of the host
//===----------------------------------------------------------------------===//

void kvcacheEmulatorRegister(const void *pointer, int64_t bytes) {
  if (bytes > 0)
    Memory::get().add(pointer, bytes);
}

void kvcacheEmulatorRegisterConstant(const void *pointer, int64_t bytes) {
  if (bytes > 0)
    Memory::get().add(pointer, bytes, /*isInitialized=*/true,
                      /*isConstant=*/true);
}

void kvcacheEmulatorUnregister(const void *pointer) {
  Memory::get().remove(pointer);
}
