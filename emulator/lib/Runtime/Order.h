//===- Order.h - Which accesses happen before which -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_ORDER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_ORDER_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

struct Thread;

/// A vector of clocks: by thread, and after the threads by slot of copies that
/// complete together. Clocks that are not there are 0. Copies share the values
/// until one of them changes.
class Clocks {
public:
  uint32_t get(uint32_t who) const {
    return values && who < values->size() ? (*values)[who] : 0;
  }
  void raise(uint32_t who, uint32_t clock);
  void join(const Clocks &other);
  void join(const std::vector<uint32_t> &others);
  /// Joins those from `first` on.
  void joinFrom(uint32_t first, const Clocks &other);
  /// Joins into `others`, which is long enough.
  void joinInto(std::vector<uint32_t> &others) const;

  bool isEmpty() const { return !values; }
  /// Whether both share their values: a quick way to see that they are equal.
  bool isSame(const Clocks &other) const { return values == other.values; }

private:
  void makeUnique(size_t size);

  std::shared_ptr<std::vector<uint32_t>> values;
};

/// Clocks of other clusters of the launch ("blocks", since most have one), as
/// far as they are acquired, and of the accesses of global memory that a
/// proxy fence has made visible to copies. Copies share what is equal: a
/// counter that all blocks update has all of them.
class OtherBlocks {
public:
  bool isEmpty() const { return !chunks && end == 0; }
  /// Joins the clocks of a block into others.
  void joinInto(uint32_t block, Clocks &seen, Clocks &fenced) const;
  bool includes(uint32_t block, uint32_t who, uint32_t clock) const;
  bool hasFenced(uint32_t block, uint32_t who, uint32_t clock) const;
  void join(const OtherBlocks &other);
  void add(uint32_t block, const Clocks &seen, const Clocks &fenced);
  /// Makes all accesses visible to copies.
  void fenceProxy();
  /// Adds all that the blocks with lower numbers did, visible to copies as
  /// well.
  void addAllBelow(uint32_t block) { end = std::max(end, block); }

private:
  struct BlockClocks {
    Clocks seen, fenced;
  };
  static constexpr uint32_t kChunkBlocks = 64;
  using Chunk = std::array<BlockClocks, kChunkBlocks>;
  using Chunks = std::vector<std::shared_ptr<const Chunk>>;

  const BlockClocks *find(uint32_t block) const;

  std::shared_ptr<const Chunks> chunks;
  /// The blocks below are acquired as a whole.
  uint32_t end = 0;
};

/// Memory that a proxy fence is for.
enum class Space : uint8_t { Shared, Global };
/// Something for each of them, by number.
template <typename T> using BySpace = std::array<T, 2>;

/// The clocks a release publishes to acquirers: the accesses that happened
/// before.
struct ReleaseClock {
  Clocks seen;
  OtherBlocks others;
  /// The clocks that a proxy fence has made visible to copies.
  BySpace<Clocks> fenced;
  /// The slot of the copies that complete on what this belongs to; -1 if there
  /// were none. What belongs to a barrier keeps it from phase to phase: who
  /// sees a phase complete has seen the ones before.
  int32_t copies = -1;
  /// Which run of `Order::begin` this is about: it means nothing in others.
  uint32_t run = 0;
  /// The clocks that were merged last into `seen` and `fenced`.
  Clocks lastSeen;
  BySpace<Clocks> lastFenced;

  void clear() {
    seen = lastSeen = {};
    fenced = lastFenced = {};
    others = {};
  }
};

/// How an atomic access or a fence orders others.
struct Ordering {
  bool acquires, releases;
  /// Whether blocks are ordered as well, not only the threads of one.
  bool isOfDevice;
  /// In a cluster of several blocks, whether these are ordered.
  bool isOfCluster = false;
};

/// The happens-before order of a cluster, as vector clocks. A thread's clock is
/// that of its accesses; it advances when the thread publishes them.
///
/// The clocks that all live threads have are stored once (`all`), not in the
/// vector of each, so that a barrier of the whole block takes time in
/// proportion to its threads only, and threads that acquire the same share a
/// vector.
class Order {
public:
  /// All threads are ordered after the accesses in `known`. The block has a
  /// number among those of launches that overlap.
  void begin(uint32_t numThreads, const OtherBlocks &known, uint32_t number);
  /// The thread acquires all that the blocks with lower numbers did.
  void acquireAllBelow(uint32_t thread, uint32_t block);

  uint32_t getClock(uint32_t thread) const { return states[thread].clock; }
  /// Begins a new clock of the thread, for its next accesses.
  uint32_t advance(uint32_t thread) { return ++states[thread].clock; }
  /// The clocks of all accesses that the thread is ordered after.
  Clocks getSeen(uint32_t thread) const;

  /// Whether the thread is ordered after the access of `who` at a clock.
  bool isAfter(uint32_t thread, uint32_t who, uint32_t clock) const {
    return who == thread || isBeforeAll(who, clock) ||
           clock <= states[thread].seen.get(who);
  }
  /// Whether such an access of a space, or one of its own, is visible to copies
  /// that the thread issues.
  bool hasFenced(Space space, uint32_t thread, uint32_t who,
                 uint32_t clock) const;
  bool isBeforeAll(uint32_t who, uint32_t clock) const {
    return clock <= all[who];
  }
  bool isFencedForAll(Space space, uint32_t who, uint32_t clock) const {
    return clock <= fencedForAll[getNumber(space)][who];
  }

  /// Whether the thread is ordered after an access of another block.
  bool isAfterOther(uint32_t thread, uint32_t block, uint32_t who,
                    uint32_t clock) const {
    return states[thread].others.includes(block, who, clock);
  }
  /// Whether such an access of global memory is visible to its copies.
  bool hasFencedOther(uint32_t thread, uint32_t block, uint32_t who,
                      uint32_t clock) const {
    return states[thread].others.hasFenced(block, who, clock);
  }

  /// Whether the thread is ordered after, and has fenced for shared memory, all
  /// accesses of third threads that the other one is ordered after.
  bool isAfterAll(uint32_t thread, uint32_t other) const;

  void release(uint32_t thread, ReleaseClock &into);
  void acquire(uint32_t thread, const ReleaseClock &from);

  //===--- Atomic accesses (PTX ISA, "Release and Acquire Patterns") ---===//

  /// The thread reads a value that carries `from`, and `others` if that comes
  /// from all of the device: it acquires that now, or by a later fence.
  void acquireAtomic(uint32_t thread, const ReleaseClock &from,
                     const OtherBlocks *others, Ordering ordering);
  /// The thread writes a value that carries its clocks, or those at
  /// its last fence. `others` is what the value carries to other blocks, null
  /// if that is nothing.
  void releaseAtomic(uint32_t thread, ReleaseClock &into, OtherBlocks *others,
                     Ordering ordering);
  void fence(uint32_t thread, Ordering ordering);

  /// Orders each of the threads after the others; `isAll` if they are all that
  /// live.
  void synchronize(const std::vector<Thread *> &threads, bool isAll);
  void fenceProxy(uint32_t thread, Space space);

  /// The number of barriers of all threads.
  uint32_t getNumBarriers() const { return numBarriers; }

  struct Event {
    uint32_t who, clock;
  };
  /// The end of a copy. Threads ordered after the event are ordered after it.
  /// So are, if `wait` isn't 0, those that have acquired this wait of the
  /// thread `event.who`, which `releaseCopies` publishes.
  struct End {
    Event event;
    uint32_t wait = 0;
  };
  /// A copy completes on what `into` belongs to.
  End complete(ReleaseClock &into);
  /// A copy completes that the thread has waited for.
  End complete(uint32_t thread, bool isByThread);
  /// A copy by the thread itself (cp.async) has completed elsewhere.
  void noteCopy(uint32_t thread, const End &end) {
    states[thread].copies.raise(end.event.who, end.event.clock);
  }

  bool isAfter(uint32_t thread, const End &end) const;
  bool hasFenced(Space space, uint32_t thread, const End &end) const;
  bool isBeforeAll(const End &end) const;
  bool isFencedForAll(Space space, const End &end) const;

  /// The ends of all copies by the thread that have completed.
  Clocks getCopies(uint32_t thread);
  /// The ends of all copies that the thread is ordered after.
  Clocks getSeenCopies(uint32_t thread) const;
  /// Publishes the ends of copies, and no accesses of a thread.
  void releaseCopies(const Clocks &ends, ReleaseClock &into);
  void releaseCopy(const End &end, ReleaseClock &into);
  /// The thread acquires the ends of copies in `from`, and no accesses
  /// of threads.
  void acquireCopies(uint32_t thread, const ReleaseClock &from);

private:
  /// The accesses that a thread has fenced.
  struct Fenced {
    /// The clock of the thread's own accesses.
    uint32_t clock = 0;
    /// Whether it has fenced all that is in `all`.
    bool hasAll = false;
    Clocks seen;
  };
  struct State {
    uint32_t clock = 1;
    Clocks seen;
    BySpace<Fenced> fenced;
    OtherBlocks others;
    /// The ends of its copies that it has not waited for, how many it has
    /// waited for, and the slot that stands for those; -1 if it is not used.
    Clocks copies;
    uint32_t numWaits = 0;
    int32_t waitSlot = -1;
  };

  /// The effect of fences on relaxed accesses. A barrier passes it on: fences
  /// are cumulative.
  struct Fences {
    /// The clocks of values that were read since the last fence.
    ReleaseClock read, readOfCluster;
    /// The clocks at the last fence, for threads of the block, of other blocks
    /// of the cluster, and of other clusters.
    ReleaseClock fenced, fencedForCluster;
    OtherBlocks fencedForDevice;
  };

  /// The last join: threads with the same clocks often acquire the same.
  struct LastJoin {
    Clocks from, with, result;
    void join(Clocks &into, const Clocks &with);
  };

  static constexpr Space kSpaces[] = {Space::Shared, Space::Global};
  static constexpr size_t getNumber(Space space) {
    return static_cast<size_t>(space);
  }

  void synchronizeAll(const std::vector<Thread *> &threads);
  void synchronizeAll(const std::vector<Thread *> &threads, Space space);
  void synchronizeSome(const std::vector<Thread *> &threads);
  void synchronizeSome(const std::vector<Thread *> &threads, Space space);
  void synchronizeFences(const std::vector<Thread *> &threads);
  void prepare(ReleaseClock &clocks) const;
  uint32_t addSlot();
  Event getWait(uint32_t thread, uint32_t wait) const {
    return {numThreads + states[thread].waitSlot, wait};
  }
  bool hasWaitSlot(const End &end) const {
    return end.wait && states[end.event.who].waitSlot >= 0;
  }
  void join(ReleaseClock &into, const ReleaseClock &from) const;
  ReleaseClock getReleaseClock(uint32_t thread) const;
  OtherBlocks getForDevice(uint32_t thread) const;
  Fences &getFences(uint32_t thread);
  void acquireOthers(uint32_t thread, const OtherBlocks &others);

  uint32_t run = 0;
  uint32_t numThreads = 0, numBarriers = 0, block = 0;
  std::vector<State> states;
  /// By thread; empty until one of them uses a fence or a relaxed access.
  std::vector<Fences> fences;
  /// Whether any thread has acquired clocks of other blocks.
  bool hasOthers = false;
  /// The clocks of the slots of copies.
  std::vector<uint32_t> slots;
  /// The accesses that every live thread has acquired and fenced.
  std::vector<uint32_t> all;
  BySpace<std::vector<uint32_t>> fencedForAll;
  LastJoin lastSeen;
  BySpace<LastJoin> lastFenced;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_ORDER_H
