//===- LaunchShadow.h - What blocks of a launch have accessed ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHSHADOW_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHSHADOW_H

#include "Order.h"
#include "Shadow.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir::kvcache::emulator {

struct Grid;

/// An access of some bytes of a granule of global memory by a block that has
/// ended.
struct PastAccess {
  /// Where, with the 48 bits that addresses of a process have at most.
  uint64_t site : 48;
  uint64_t isWrite : 1, isAtomic : 1;
  /// Whether it is atomic for all of the device.
  uint64_t isOfDevice : 1;
  /// Whether it is atomic only in that it is volatile.
  uint64_t isVolatile : 1;
  /// Whether it is a copy by the asynchronous proxy.
  uint64_t isAsync : 1;
  uint32_t block;
  /// Of `who` in its block then: see `Order`.
  uint32_t clock;
  uint16_t who, mask;
  /// The next one of the granule, which is older.
  uint32_t next;

  const KVCacheSite *getSite() const {
    return reinterpret_cast<const KVCacheSite *>(static_cast<uintptr_t>(site));
  }
  /// Whether both want an order: one of them writes, and they are not both
  /// atomic for all of the device.
  bool conflicts(const PastAccess &other) const {
    return (mask & other.mask) && (isWrite || other.isWrite) &&
           !(isAtomic && isOfDevice && other.isAtomic && other.isOfDevice);
  }
};

/// What the blocks of a launch know of each other. Blocks run at once, but take
/// turns here, in the order of their numbers: one has its turn when all before
/// it have ended. It takes it with its first atomic access of global memory, or
/// at its end. So everything is as if the blocks ran one after the other,
/// whatever the number of cores.
class LaunchShadow {
public:
  explicit LaunchShadow(const Grid &grid);

  /// Whether a kernel may write the memory around an address: who reads other
  /// memory is in nobody's way.
  bool mayChange(uintptr_t address) const {
    for (auto [begin, end] : changed)
      if (begin <= address && address < end)
        return true;
    return changesAnything;
  }

  //===--- Turns ---===//

  /// Waits for the turn of a block. False if one before it has failed.
  bool waitForTurn(uint64_t block);
  /// Ends the turn of a block, which waits for it first if it must.
  void endTurn(uint64_t block);
  /// A block has failed: those behind it don't matter any more.
  void stop(uint64_t block);

  //===--- Only for the block whose turn it is ---===//

  /// Whether anybody has accessed the granule.
  bool hasAny(uint64_t granule) const { return getFirst(granule) != kNone; }
  /// The last access of the granule, of those that conflict with `access`, that
  /// `isKnown` is false for; null if there is none.
  template <typename Predicate>
  const PastAccess *findConflict(uint64_t granule, const PastAccess &access,
                                 Predicate isKnown) const {
    for (uint32_t i = getFirst(granule); i != kNone; i = accesses[i].next)
      if (accesses[i].conflicts(access) && !isKnown(accesses[i]))
        return &accesses[i];
    return nullptr;
  }
  /// Adds an access, all that it conflicts with being ordered before it. Of
  /// many blocks that read the same, the first and the last are remembered.
  void add(uint64_t granule, const PastAccess &access);

  /// What the value at an address tells other blocks.
  OtherBlocks &getReleased(const void *atomic) { return released[atomic]; }

private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  using Page = std::array<uint32_t, GranuleTable::kPageGranules>;

  uint32_t getFirst(uint64_t granule) const {
    const Page *page = findPage(granule / GranuleTable::kPageGranules);
    return page ? (*page)[granule % GranuleTable::kPageGranules] : kNone;
  }
  const Page *findPage(uint64_t number) const;
  Page &getPage(uint64_t number);
  void addChanged(uintptr_t address);
  void strip(uint32_t &head, uint16_t mask);

  std::vector<std::pair<uintptr_t, uintptr_t>> changed;
  bool changesAnything = false;

  std::mutex mutex;
  std::condition_variable isNext;
  uint64_t turn = 0, firstFailed = ~uint64_t{0};

  std::unordered_map<uint64_t, Page> pages;
  /// The page that was looked for last, null if it isn't there.
  mutable uint64_t lastNumber = ~uint64_t{0};
  mutable const Page *lastPage = nullptr;
  std::vector<PastAccess> accesses;
  std::unordered_map<const void *, OtherBlocks> released;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHSHADOW_H
