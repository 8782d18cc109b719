//===- LaunchShadow.h - What blocks of a launch have accessed ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHSHADOW_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHSHADOW_H

#include "Grid.h"
#include "Order.h"
#include "Shadow.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir::kvcache::emulator {

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
  /// The clock of `who` in its block at that time: see `Order`.
  uint32_t clock;
  uint16_t who, mask;
  /// The next one of the granule, which is older.
  uint32_t next;

  const KVCacheSite *getSite() const {
    return reinterpret_cast<const KVCacheSite *>(static_cast<uintptr_t>(site));
  }
  /// Whether both need an order: one of them writes, and they are not both
  /// atomic for all of the device.
  bool conflicts(const PastAccess &other) const {
    return (mask & other.mask) && (isWrite || other.isWrite) &&
           !(isAtomic && isOfDevice && other.isAtomic && other.isOfDevice);
  }
};

/// Accesses of global memory by blocks that have ended.
class PastAccesses {
public:
  /// Whether a block has accessed the granule.
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
  /// Adds accesses that all of these are ordered before.
  void add(const PastAccesses &later);

private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  using Page = std::array<uint32_t, GranuleTable::kPageGranules>;

  uint32_t getFirst(uint64_t granule) const {
    auto page = pages.find(granule / GranuleTable::kPageGranules);
    return page == pages.end()
               ? kNone
               : page->second[granule % GranuleTable::kPageGranules];
  }
  void strip(uint32_t &head, uint16_t mask);

  std::unordered_map<uint64_t, Page> pages;
  std::vector<PastAccess> accesses;
};

/// The order between the blocks of a launch. Blocks run at once, but access
/// this in turns, by their numbers: a block has its turn when all blocks before
/// it have ended. It waits for its turn at its first atomic access of global
/// memory, or at its end. So results are as if blocks ran one after another,
/// for any number of cores. A programmatic launch continues where the launch
/// before it stops: its block numbers follow those of that launch, whose
/// accesses are ordered before it only after `griddepcontrol.wait`.
class LaunchShadow {
public:
  /// `before` is the launch before a programmatic one, or null. It may not have
  /// ended: see `absorb`.
  LaunchShadow(const Grid &grid, const LaunchShadow *before);

  /// Whether a kernel may write the memory around an address: a read of
  /// other memory conflicts with nothing. A later launch may write any while a
  /// kernel runs that lets it begin.
  bool mayChange(uintptr_t address) const {
    for (auto [begin, end] : changed)
      if (begin <= address && address < end)
        return true;
    return changesAnything || startsDependents;
  }

  //===--- The launch before ---===//

  /// The number of the first block.
  uint32_t getFirstBlock() const { return firstBlock; }
  /// The launch before has ended: takes its accesses.
  void absorb(LaunchShadow &&before);
  /// The accesses of the launches before; null if they don't matter, or if the
  /// last of them has not ended.
  const PastAccesses *getEarlier() const {
    return earlier ? &*earlier : nullptr;
  }
  /// The accesses of earlier launches that happened before a block begins.
  const OtherBlocks &getClocksAtStart() const { return clocksAtStart; }
  /// The first thread of a block has executed launch_dependents: later launches
  /// begin with what it has released acquired.
  void addStarting(const OtherBlocks &released);
  /// A thread waits for the launch before.
  void noteWait() { hasWaited = true; }
  bool hasAnyWaited() const { return hasWaited; }
  /// Whether a block is one of the launch right before.
  bool isOfLaunchBefore(uint32_t block) const {
    return launches.size() > 1 && block < firstBlock &&
           block >= launches[launches.size() - 2].firstBlock;
  }
  /// "block (1, 0, 0)", of a launch before "block (1, 0, 0) of
  /// @kernels::@append"; of a cluster of several blocks "cluster (1, 0, 0)".
  std::string describeCluster(uint32_t number) const;

  //===--- Turns ---===//

  /// Whether blocks run in turns, so that each has the turn whenever it runs.
  bool isTogether() const { return launches.back().grid.numTogether > 1; }
  /// Waits for the turn of a block. False if one before it has failed.
  bool waitForTurn(uint64_t block);
  /// Ends the turn of a block, which waits for it first if it must.
  void endTurn(uint64_t block);
  /// A block has failed: those after it don't matter any more.
  void stop(uint64_t block);

  //===--- Only for the block whose turn it is ---===//

  PastAccesses accesses;

  /// The clocks that the value at an address publishes to other blocks, and the
  /// block that wrote it by a plain store.
  struct Released {
    OtherBlocks others;
    uint32_t writer = ~uint32_t{0};
  };
  Released &getReleased(const void *atomic) { return released[atomic]; }

private:
  /// A launch, from its first block on.
  struct Numbers {
    uint32_t firstBlock;
    Grid grid;
  };

  void addChanged(uintptr_t address);

  std::vector<std::pair<uintptr_t, uintptr_t>> changed;
  bool changesAnything = false, startsDependents = false;

  /// The numbers of this launch and of earlier ones.
  std::vector<Numbers> launches;
  uint32_t firstBlock = 0;
  std::optional<PastAccesses> earlier;
  OtherBlocks clocksAtStart, clocksOfDependents;
  std::atomic<bool> hasWaited{false};

  std::mutex mutex;
  std::condition_variable isNext;
  uint64_t turn = 0, firstFailed = ~uint64_t{0};

  std::unordered_map<const void *, Released> released;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_LAUNCHSHADOW_H
