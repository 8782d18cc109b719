//===- Sanitizer.h - Checked accesses of memory -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_SANITIZER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_SANITIZER_H

#include "LaunchShadow.h"
#include "Order.h"
#include "Poison.h"
#include "RowReads.h"
#include "Shadow.h"
#include "Thread.h"
#include "kvcache/Emulator/ABI.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
class Cluster;

/// Bytes of shared memory, at a place in that of the cluster.
struct SharedRange {
  uint32_t offset, bytes;
};

/// Bytes of global memory.
struct GlobalRange {
  const void *begin;
  uint64_t bytes;
};

/// Which path to memory a copy takes: cp.async takes that of loads and stores,
/// tensor and bulk copies the asynchronous one.
enum class Proxy : uint8_t { Generic, Async };

/// Finds accesses of shared and global memory that are not ordered, that read
/// uninitialized bytes, and that touch what a copy has in flight. Every
/// function that finds something ends the launch (`Block::fail`). Nothing
/// happens, and little time is spent, when it is off.
///
/// What a cluster does to global memory stays here until its turn comes
/// (`LaunchShadow`): then it is compared with what the clusters before it did.
class Sanitizer {
public:
  explicit Sanitizer(Cluster &cluster) : cluster(cluster) {}

  /// Forgets everything, for the cluster of a number in its launch.
  void begin(bool isOn, LaunchShadow *launch, uint64_t number);

  /// An access by a thread, with the flags of `kvcacheEmulatorAccess`. Returns
  /// the uninitialized bytes that it reads, where that is no error. The bytes
  /// of a store at `rewritten` may be there already.
  Poison access(Thread &thread, const KVCacheSite *site, SharedRange range,
                uint32_t flags, const void *rewritten = nullptr);
  /// Announces the rows of matrices that the lanes of a warp read, from this
  /// thread on. `readRow` is the read of the 16 bytes at `offset`, by the lanes
  /// that `RowReads::encode` gives. It is false if the read may be an error or
  /// is uninitialized: then the caller announces the access of each lane.
  uint32_t beginRows(const Thread &first) {
    checkRewrites();
    return rowReads.getNumber(first.index);
  }
  bool readRow(const Thread &first, uint32_t reads, const KVCacheSite *site,
               uint32_t offset, uint32_t row);
  /// Records an access to global memory.
  Poison accessGlobal(Thread &thread, const KVCacheSite *site,
                      const void *pointer, int64_t bytes, uint32_t flags);

  //===--- Uninitialized values ---===//

  /// Poisons again the bytes of the range that are not 0 in `bytes`, after an
  /// access that writes them.
  void poisonShared(SharedRange range, const char *bytes, uint32_t origin);
  /// The number of the origin of a value that the thread reads from an
  /// uninitialized word of tensor memory.
  uint32_t addTensorOrigin(const KVCacheSite *site, uint32_t address) {
    Origins::Origin origin{site, address, false, false};
    origin.isTensor = true;
    return origins.add(origin);
  }
  /// The number of the origin of a value that the thread reads from a variable
  /// of its own, of `size` bytes, where the byte at `offset` is
  /// uninitialized.
  uint32_t addOrigin(const KVCacheSite *site, uint64_t offset, uint64_t size) {
    return origins.add({site, offset, false, false, size});
  }
  /// Fails for a thread that uses a poisoned value, such as "branches on".
  [[noreturn]] void failUse(const Thread &thread, const KVCacheSite *site,
                            const std::string &use, uint32_t origin) const;

  //===--- Order ---===//

  /// The clocks of all accesses that the thread is ordered after.
  uint32_t getClock(const Thread &thread) const;
  Clocks getSeen(const Thread &thread) const;
  /// Merges the clocks of the thread into `into`.
  void release(Thread &thread, ReleaseClock &into);
  /// The thread acquires the clocks in `from`.
  void acquire(Thread &thread, const ReleaseClock &from);
  /// Merges the clocks of the thread's last cluster fence into `into`.
  void releaseFenced(Thread &thread, ReleaseClock &into);
  /// Whether the thread is ordered after the accesses of another one
  /// at a clock.
  bool isAfter(const Thread &thread, uint32_t who, uint32_t clock) const {
    return isOn && order.isAfter(thread.index, who, clock);
  }
  /// The thread acquires the ends of copies in `from`, and nothing else.
  void acquireCopies(Thread &thread, const ReleaseClock &from);
  /// Orders each of the threads after the others (bar.sync of the block or
  /// of some warps, bar.warp.sync).
  void synchronize(const std::vector<Thread *> &threads);
  /// Around an atomic access of shared or global memory, with the flags of
  /// `kvcacheEmulatorAccess`: the thread acquires the clocks of the value that
  /// it reads, and releases its own with the value that it writes.
  void acquireAtomic(Thread &thread, const KVCacheSite *site,
                     const void *pointer, uint32_t flags);
  void releaseAtomic(Thread &thread, const void *pointer, uint32_t flags);
  /// Orders accesses around atomic ones, by flags likewise.
  void fence(Thread &thread, uint32_t flags);
  /// Accesses ordered before become visible to copies that are ordered after
  /// (fence.proxy.async). Between blocks, any fence for global memory of one
  /// before is taken for the right one.
  void fenceProxy(Thread &thread, Space space);

  //===--- The launch before a programmatic one ---===//

  /// The thread has waited for the launch before (griddepcontrol.wait), and
  /// acquires its accesses.
  void acquireEarlier(Thread &thread);
  /// Later launches may begin; the thread is the first of the block to say so.
  void startDependents(Thread &thread);
  /// Where clusters run in turns, lets the others go on.
  void giveWay(const Thread &thread);
  /// The launch before has ended since the block began. Returns what the block
  /// has done until now in conflict with it.
  std::optional<std::string> checkAhead();

  //===--- Copies ---===//

  /// A copy that the thread issues and that is not done.
  using Copy = uint32_t;
  /// A copy that needs no wait.
  static constexpr Copy kNoCopy = ~Copy{0};

  /// A copy that is going to write the range: until it completes, no access may
  /// touch it.
  Copy issueWrite(Thread &thread, const KVCacheSite *site, SharedRange range,
                  Proxy proxy);
  /// A copy that is going to read the range: until it completes, no access
  /// may write it. The bytes that are not 0 in `isUsed`, which has one
  /// for each, must be initialized, or all if it is empty.
  Copy issueRead(Thread &thread, const KVCacheSite *site, SharedRange range,
                 Proxy proxy, const std::vector<char> &isUsed = {});
  /// A read by the asynchronous proxy, for all these threads, of units of 16
  /// bytes of shared memory. If some bytes are uninitialized, `unwritten` gets
  /// a mask of those for each unit, and `origin` the origin of their poison.
  Copy issueUnitReads(const std::vector<Thread *> &lanes,
                      const KVCacheSite *site,
                      const std::vector<uint32_t> &units,
                      std::vector<uint16_t> &unwritten, uint32_t &origin);
  /// Copies of ranges of global memory, to write them or to read them: then
  /// `unwritten` gets the uninitialized bytes.
  Copy issueGlobalWrite(Thread &thread, const KVCacheSite *site,
                        const std::vector<GlobalRange> &ranges, Proxy proxy);
  Copy issueGlobalRead(Thread &thread, const KVCacheSite *site,
                       const std::vector<GlobalRange> &ranges, Proxy proxy,
                       Unwritten &unwritten);
  /// The copy is done, which `into` publishes.
  Order::End complete(Copy copy, ReleaseClock &into);
  /// An operation other than a copy is done, which `into` publishes.
  Order::End completeCommit(ReleaseClock &into) { return order.complete(into); }
  /// The copy is done, which the thread acquires.
  Order::End complete(Copy copy, Thread &thread);
  /// The copy is done together with another one.
  void complete(Copy copy, const Order::End &end);
  /// The ends of all copies by the thread itself (cp.async) that are done.
  Clocks getCopies(const Thread &thread);
  /// The ends of all copies that the thread is ordered after.
  Clocks getSeenCopies(const Thread &thread) const;
  /// Publishes in `into` that copies are done, and nothing else.
  void releaseCopies(const Clocks &ends, ReleaseClock &into);
  void releaseCopy(const Order::End &end, ReleaseClock &into);

  //===--- mbarriers ---===//

  /// The 8 bytes at `offset` are an mbarrier, which plain accesses must not
  /// touch, until it is invalidated.
  void placeBarrier(Thread &thread, const KVCacheSite *site, uint32_t offset);
  /// An operation on that mbarrier: it must have been placed before.
  void useBarrier(const Thread &thread, const KVCacheSite *site,
                  uint32_t offset);
  void removeBarrier(Thread &thread, const KVCacheSite *site, uint32_t offset);

  /// The end of a block: fails if a copy reads or writes its shared memory.
  void endBlock(const Block &block);
  /// The end of the cluster: fails if a copy is in flight.
  void end();

  /// The cluster has ended: waits for its turn, and unless it has failed
  /// publishes its accesses to the launch. Returns what conflicts with the
  /// blocks before.
  std::optional<std::string> finish(bool hasFailed);

  /// The kind of an access, which decides its conflicts with earlier ones.
  enum class Kind : uint8_t { Read, Write, AtomicRead, AtomicWrite };
  enum class Relation : uint8_t { Ordered, Unordered, Unfenced, InFlight };

  static Kind getKind(bool isWrite, bool isAtomic) {
    return isAtomic  ? isWrite ? Kind::AtomicWrite : Kind::AtomicRead
           : isWrite ? Kind::Write
                     : Kind::Read;
  }
  static Kind getKind(uint32_t flags) {
    constexpr uint32_t atomic = KVCacheAccessAtomic | KVCacheAccessVolatile;
    return getKind((flags & KVCacheAccessWrite) != 0, (flags & atomic) != 0);
  }
  static bool isWrite(Kind kind) {
    return kind == Kind::Write || kind == Kind::AtomicWrite;
  }
  static bool isAtomic(Kind kind) {
    return kind == Kind::AtomicRead || kind == Kind::AtomicWrite;
  }

private:
  struct CopyState {
    const KVCacheSite *site;
    /// The first of its ranges.
    uint64_t begin, bytes;
    uint32_t issuer;
    Proxy proxy;
    bool isGlobal, isWrite, isInFlight;
    /// The cells that stand for it.
    uint32_t numCells;
    /// When it is done: it is like an access by that one then.
    Order::End end;
    /// Whether it is published to the launch.
    bool isPublished = false;
  };

  /// An access that a thread, or a copy that it issues, is about to do.
  struct Access {
    const Thread &thread;
    const KVCacheSite *site;
    /// An offset in shared memory, or an address.
    uint64_t begin, bytes;
    Kind kind;
    bool reads, isAsync;
    std::optional<Copy> copy;
    bool isGlobal = false, isOfDevice = false, isOfCluster = false;
    bool isInvariant = false, isVolatile = false;
    /// Whether uninitialized bytes that are read give poison. A copy of ranges
    /// of global memory, of which this is one, gets the bytes as well.
    bool poisons = false;
    /// The cell that stands for several lanes of a warp.
    std::optional<Cell> lanesCell;
    Unwritten *unwritten = nullptr;
    size_t numRange = 0;
    /// The bytes, if another thread may have written them as they are.
    const char *rewritten = nullptr;
  };
  struct Rules;
  /// A store that is about to write what another thread has just written: fine
  /// if it leaves the bytes as they are.
  struct Rewrite {
    Access access;
    Cell before;
    /// The granule, and the bytes of it that both write.
    uint64_t index;
    uint16_t mask;
    /// The old bytes of the granule that the access writes.
    std::array<char, kGranuleBytes> bytes;

    uint64_t begin() const {
      return std::max(access.begin, index * kGranuleBytes);
    }
    uint64_t size() const {
      uint64_t end = (index + 1) * kGranuleBytes;
      return std::min(access.begin + access.bytes, end) - begin();
    }
    /// The current bytes.
    const char *data() const {
      return access.rewritten + (begin() - access.begin);
    }
  };
  /// The clocks of a value that atomic accesses have written.
  struct Released {
    ReleaseClock clocks;
    /// In a cluster of several blocks, by rank: the clocks that threads of a
    /// block release to each other.
    std::vector<ReleaseClock> clocksByBlock;
    /// The places of the threads that wrote the value (`ClusterLifetime`).
    Clocks places;
    /// The thread that has written the value by a plain store.
    uint32_t writer = ~uint32_t{0};
  };

  void touch(const Access &access);
  void compact(const Access &access, Granule &granule);
  void checkGranule(const Access &access, const Granule &granule,
                    uint64_t index, uint16_t mask);
  void checkList(const Access &access, const CellList &list, Kind kind,
                 uint64_t index, uint16_t mask);
  Relation relate(const Access &access, const Cell &cell, Kind kind,
                  uint16_t mask = 0xffff) const;
  bool isAfterWrites(const CellList &writes, uint32_t reads,
                     uint32_t row) const;
  void note(const Access &access, Granule &granule, uint16_t mask);
  Granule &getGranule(uint64_t index, bool isGlobal = false);
  Released &getReleased(const void *atomic);
  ReleaseClock &getReleasedOfBlock(Released &released,
                                   const Thread &thread) const;
  Ordering getOrdering(uint32_t flags) const;
  bool isOfAnotherBlock(const Access &access, const Cell &cell) const;
  OtherBlocks *getReleasedForDevice(const void *pointer, uint32_t flags);

  bool checkPlace(const Thread &thread, const KVCacheSite *site,
                  const void *pointer, int64_t bytes, uint32_t flags) const;
  void checkInitialized(const Access &access);
  void checkUsed(const Access &access, const std::vector<char> &isUsed);
  void checkOrder(const Access &access);
  Copy issueGlobal(Thread &thread, const KVCacheSite *site,
                   const std::vector<GlobalRange> &ranges, Proxy proxy,
                   Unwritten *unwritten);
  void notePoison(const Access &access, uint64_t index, uint16_t missing);
  uint32_t getStoredOrigin(const Access &access, uint64_t index,
                           uint16_t missing) const;
  void checkInvariant(const Access &access, uint64_t index,
                      uint16_t mask) const;
  uint64_t findMissing(uint64_t begin, uint64_t bytes) const;
  bool isRewrite(const Access &access, const Cell &cell, Kind kind) const;
  void noteRewrite(const Access &access, const Cell &before, uint64_t index,
                   uint16_t mask);
  void checkRewrites() {
    if (!rewrites.empty())
      finishRewrites();
  }
  void finishRewrites();
  void checkPast(const Access &access, uint64_t index, uint16_t mask,
                 const PastAccesses &accesses) const;
  void takeTurn(const Thread &thread, const KVCacheSite *site);
  template <typename Visitor> void forEachGlobal(Visitor visit) const;
  PastAccess getPast(const Cell &cell, bool isAtomic) const;
  template <typename Predicate>
  std::optional<std::string> findConflict(const PastAccesses &accesses,
                                          Predicate isKnown) const;
  std::optional<std::string> findConflict() const;
  /// The number of the cluster among those of launches that overlap.
  uint32_t getId() const { return launch->getFirstBlock() + number; }
  bool isPublished(const Cell &cell) const;
  void tellLaunch();

  Copy addCopy(const CopyState &state);
  Copy issue(Thread &thread, const KVCacheSite *site, SharedRange range,
             Proxy proxy, Kind kind, const std::vector<char> &isUsed = {});
  Order::End finish(Copy copy, Order::End end);
  void forget(Copy copy);

  static const char *getVerb(Kind kind, bool isVolatile);
  std::string describe(const Access &access) const;
  std::string describe(const CopyState &copy, const Thread &other) const;
  std::string describeUnordered(uint32_t who, const Access &access) const;
  std::string describeConflict(const CopyState &copy, const Access &access,
                               Relation relation) const;
  std::string describeConflict(const Access &access, const Cell &cell,
                               Kind kind) const;
  std::string describePlace(uint64_t begin, bool isGlobal) const;
  std::string describePast(const PastAccess &past, bool isAtomic) const;
  std::string describeOrigin(uint32_t number) const;
  std::string describeMissing(const Access &access, uint64_t index,
                              uint16_t missing) const;
  std::string describe(const Access &access, uint64_t index, uint16_t mask,
                       const std::string &what) const;
  [[noreturn]] void fail(const Access &access, uint64_t index, uint16_t mask,
                         const std::string &what) const;
  [[noreturn]] void failInFlight(const CopyState &copy,
                                 const Block &block) const;

  Cluster &cluster;
  bool isOn = false;
  /// Counts the clusters, so that granules of earlier ones are distinguished.
  uint32_t run = 0;
  Order order;
  mutable RowReads rowReads{order};
  LaunchShadow *launch = nullptr;
  uint64_t number = 0;
  bool hasTurn = false;
  /// Where clusters run in turns, the clock of each thread from which on its
  /// accesses are not published to the launch.
  std::vector<uint32_t> published;
  /// Whether the cluster began before the launch before had ended, and has not
  /// been compared with it yet.
  bool isAhead = false;
  GranuleTable global;
  std::vector<Rewrite> rewrites;
  /// The poison of the current access.
  Poison poison;
  Origins origins;
  /// By granule.
  std::unordered_map<uint64_t, StoredPoison> stored;
  /// The granules of each block, and all.
  std::unique_ptr<Granule[]> granules;
  uint32_t granulesOfBlock = 0, numGranules = 0;
  CellPool pool;
  /// By address; of the addresses that follow when these are many already, what
  /// all of them carry.
  std::unordered_map<const void *, Released> atomics;
  Released otherAtomics;
  std::vector<CopyState> copies;
  /// Whether anything shows that copies write shared memory: one of them, or an
  /// mbarrier that may wait for some.
  bool hasCopies = false;
  /// The numbers that are free again.
  std::vector<Copy> freeCopies;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_SANITIZER_H
