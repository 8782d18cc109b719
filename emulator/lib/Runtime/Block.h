//===- Block.h - A block of a cluster ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_BLOCK_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_BLOCK_H

#include "Barriers.h"
#include "Cluster.h"
#include "MBarriers.h"
#include "Meter.h"
#include "Registers.h"
#include "TensorMemory.h"
#include "Warpgroups.h"
#include "Warps.h"

#include <functional>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

/// A block: its threads, its shared memory, and what only they have together.
/// What functions that compiled code calls may use.
class Block {
public:
  Block(Cluster &cluster, uint32_t rank);
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  /// Comes before the first `begin` of a launch.
  void prepare();
  /// Begins at a place in the grid.
  void begin(const uint32_t (&ctaid)[3]);
  /// A thread has ended. Fails if an operation is incomplete after the last
  /// one.
  void noteExit(Thread &thread) {
    --live;
    warps.noteExit(thread);
    barriers.noteExit(thread);
    warpgroups.noteExit(thread);
    if (live == 0)
      end();
  }

  Cluster &cluster;
  /// In the cluster.
  const uint32_t rank;
  /// The block's shared memory, where its places begin (`SharedVariables`).
  char *shared = nullptr;

  Sanitizer &sanitizer;
  Barriers barriers{*this};
  MBarriers mbarriers{*this};
  Warps warps{*this};
  TensorMemory tensorMemory{*this};
  Warpgroups warpgroups{*this};
  Registers registers{*this};
  Meter meter;
  /// Whether any thread lets later launches begin.
  bool hasStartedDependents = false;

  const Grid &getGrid() const { return cluster.getGrid(); }
  bool isSanitized() const { return cluster.isSanitized(); }
  /// The number of threads, and of those that have not ended.
  uint32_t size() const { return numThreads; }
  uint32_t numLive() const { return live; }
  /// A thread, by its number in the block.
  Thread &getThread(uint32_t number) const {
    return cluster.threads[rank * numThreads + number];
  }
  uint32_t getNumber(const Thread &thread) const {
    return thread.index - rank * numThreads;
  }

  //===--- Shared memory ---===//

  /// Whether `pointer` is in the block's shared memory, or in a red zone of it.
  bool isShared(const void *pointer) const {
    const SharedVariables &variables = getGrid().sharedVariables;
    return pointer >= shared - variables.redZoneBytes() &&
           pointer < shared + variables.size();
  }
  /// The place in the cluster of a pointer to `bytes` of the block's shared
  /// memory. Fails as an error of `thread` if they may not be accessed.
  uint32_t getSharedOffset(const Thread &thread, const KVCacheSite *site,
                           const void *pointer, int64_t bytes) const;
  /// Fails as an error of `thread` if the pointer is not a multiple of the
  /// alignment.
  void checkAlignment(const Thread &thread, const KVCacheSite *site,
                      const void *pointer, uint64_t alignment) const {
    // A power of two: this comes before every access.
    if (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1))
      failAlignment(thread, site, pointer, alignment);
  }
  /// The block of the cluster whose shared memory has the pointer, this one if
  /// that is none. Fails if a thread of this block must not access it, because
  /// that block may not have begun, or has ended.
  Block &getOwner(const Thread &thread, const KVCacheSite *site,
                  const void *pointer) const;
  /// The other block of the pair, whose rank differs in the last bit (PTX ISA,
  /// "CTA Pair"). Fails as an error of `thread` if there is none.
  Block &getPeer(const Thread &thread, const KVCacheSite *site) const;
  /// The blocks that an instruction of this one or of its pair is about, by
  /// rank. Fails likewise, and if the other one may not have begun, or has
  /// ended.
  std::vector<Block *> getGroup(const Thread &thread, const KVCacheSite *site,
                                bool isPair) const;
  /// The blocks whose ranks are in a multicast mask. Fails likewise, for a
  /// thread that "copies" with the mask.
  std::vector<Block *> getMasked(const Thread &thread, const KVCacheSite *site,
                                 int32_t mask, const std::string &verb) const;
  /// Moves an address in this block's shared memory to the same offset in the
  /// shared memory of another block.
  const void *translate(const void *pointer, const Block &to) const {
    return to.shared + (static_cast<const char *>(pointer) - shared);
  }
  std::string describeShared(uint32_t place) const {
    return cluster.describeShared(place);
  }

  //===--- See Cluster ---===//

  void wait(Thread &thread, const KVCacheSite *site, Waitable &what) const {
    cluster.wait(thread, site, what);
  }
  bool poll(Thread &thread, const KVCacheSite *site, Waitable &what) const {
    return cluster.poll(thread, site, what);
  }
  void wake(Waitable &what) const { cluster.wake(what); }
  void noteProgress() const { cluster.noteProgress(); }
  void defer(Waitable &target, std::function<void()> work) const {
    cluster.defer(target, std::move(work));
  }
  bool spin(Thread &thread, const KVCacheSite *site) const {
    return cluster.spin(thread, site);
  }
  void tick(const Thread &thread, const KVCacheSite *site) const {
    cluster.tick(thread, site);
  }
  [[noreturn]] void fail(const Thread &thread, const KVCacheSite *site,
                         const std::string &message) const {
    cluster.fail(thread, site, message);
  }
  std::mt19937_64 &getRandom() const { return cluster.getRandom(); }

  //===--- Text ---===//

  /// "thread (1, 0, 0)", "block (0, 2, 0)".
  static std::string describe(const Thread &thread);
  std::string describe() const;
  /// "thread (1, 0, 0)", with its block if that is not the one of `other`.
  static std::string describe(const Thread &thread, const Thread &other);
  /// "llvm.store at gather.mlir:12:3".
  static std::string describe(const KVCacheSite *site);
  /// An error of a thread, as `fail` reports it.
  static std::string describe(const Thread &thread, const KVCacheSite *site,
                              const std::string &message);

private:
  void prepareThread(Thread &thread, uint32_t number, const uint32_t (&tid)[3]);
  void beginThread(Thread &thread);
  void end();
  [[noreturn]] void failAlignment(const Thread &thread, const KVCacheSite *site,
                                  const void *pointer,
                                  uint64_t alignment) const;

  uint32_t numThreads = 0, live = 0;
  /// Where the block is in the grid.
  uint32_t ctaid[3] = {};
  /// The block and its cluster, for compiled code.
  KVCacheCluster place = {};
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_BLOCK_H
