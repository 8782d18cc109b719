//===- Cluster.h - Blocks that run together, and their schedule -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTER_H

#include "ClusterBarrier.h"
#include "ClusterLifetime.h"
#include "Grid.h"
#include "Interrupt.h"
#include "Sanitizer.h"
#include "TensorOrder.h"
#include "TensorQueue.h"
#include "Thread.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;

/// The fences that order the initialization of mbarriers before copies.
class InitFences {
public:
  void begin(uint32_t numThreads) {
    fences.assign(numThreads, Fences());
    time = 0;
  }
  /// The place of an init in the order of inits and fences.
  uint64_t noteInit() { return ++time; }
  /// A thread's fence: one of the async proxy makes known to copies what others
  /// have initialized, any the thread's own barriers.
  void noteFence(const Thread &thread, bool isOfProxy);
  /// Whether a fence orders the initialization before a copy that `issuer`
  /// issues.
  bool isFenced(const Thread &initThread, uint64_t initTime,
                const Thread &issuer) const;

private:
  /// The last fences of a thread.
  struct Fences {
    uint64_t any = 0, proxy = 0;
  };

  /// By thread.
  std::vector<Fences> fences;
  /// Counts inits and fences.
  uint64_t time = 0;
};

/// The blocks of a cluster, from their first thread to their last; where a
/// launch has no clusters, one block. One thread of the host runs all of it,
/// and uses the object for one cluster after another.
class Cluster {
public:
  /// The blocks of a cluster have their shared memory one after the other, at
  /// this distance: the address of a byte in the shared memory of the cluster
  /// has the rank of its block in the bits from 24 on. Places count likewise.
  static constexpr uint32_t kSpanBits = 24, kSpanBytes = 1 << kSpanBits;

  Cluster();
  ~Cluster();
  Cluster(const Cluster &) = delete;
  Cluster &operator=(const Cluster &) = delete;

  /// Begins with the cluster of that number in the launch. Between two launches
  /// comes `leave`.
  void begin(const Grid &grid, uint64_t number);
  /// Goes on until the cluster has ended or failed. False if it stops before
  /// that: until the launch before has ended, or where later launches may begin
  /// (`Grid::isAhead`, `Grid::stopsForDependents`).
  bool goOn();
  /// Whether it has only given way to others, and can go on at once.
  bool hasGivenWay() const { return givingWay; }
  /// Lets other clusters run before the thread goes on.
  void giveWay(Thread &thread);
  /// The cluster has ended. Returns what is wrong with the kernel, if anything
  /// is.
  std::optional<std::string> finish();

  /// The launch has no more clusters for this object.
  void leave() { isPrepared = false; }

  //===--- The blocks and their threads ---===//

  /// The threads of all blocks, block after block.
  std::deque<Thread> threads;

  const Grid &getGrid() const { return *grid; }
  bool isSanitized() const { return grid->module->isSanitized; }
  bool mayRewrite() const { return grid->module->mayRewrite; }
  /// The number of threads, and of those that have not ended.
  uint32_t size() const { return numThreads; }
  uint32_t numLive() const { return live; }
  uint32_t numBlocks() const { return numActive; }
  Block &getBlock(uint32_t rank) { return *blocks[rank]; }
  const Block &getBlock(uint32_t rank) const { return *blocks[rank]; }

  //===--- Shared memory ---===//

  /// The shared memory of the first block, where places begin.
  char *shared = nullptr;

  /// The block whose shared memory, or a red zone of it, has the pointer; null
  /// if that is none of the cluster.
  Block *findBlock(const void *pointer) const;
  bool isShared(const void *pointer) const { return findBlock(pointer); }
  /// "byte 64 of shared @tile", and of which block if there are several.
  std::string describeShared(uint32_t place) const;

  //===--- What orders threads ---===//

  Sanitizer sanitizer{*this};
  ClusterLifetime lifetime{*this};
  ClusterBarrier barrier{*this};
  InitFences initFences;
  TensorOrder tensorOrder{*this};
  TensorQueue tensorQueue{*this};

  //===--- Waiting ---===//

  /// Lets others run until `wake`. The caller looks again then at what it waits
  /// for, since it may have been woken for another reason.
  void wait(Thread &thread, const KVCacheSite *site, Waitable &what);

  /// Like `wait`, but returns false, rather than being part of a deadlock, if
  /// nothing in the cluster can go on without this thread.
  bool poll(Thread &thread, const KVCacheSite *site, Waitable &what);

  /// Lets all threads go on that wait for `what`.
  void wake(Waitable &what);

  /// Something has happened that others may wait for, such as an arrival: as
  /// long as that goes on, threads that poll are no deadlock.
  void noteProgress() { hasProgress = true; }

  /// Puts `work` off until no thread of the cluster can go on, and one waits
  /// for `target`; of several pieces one at a time, in an order that the seed
  /// gives. If the module isn't sanitized, it runs at once.
  void defer(Waitable &target, std::function<void()> work);

  /// Lets the others run that can, then this thread again. To spin while no
  /// thread makes progress is an error in the end. False if there were no
  /// others.
  bool spin(Thread &thread, const KVCacheSite *site);

  /// Checks the time at an instruction that loops execute. Fails if the launch
  /// is interrupted, or if the cluster has taken more of the processor's time
  /// than one may (KVCACHE_EMULATOR_TIMEOUT).
  void tick(const Thread &thread, const KVCacheSite *site) {
    if (++numTicks % kTickPeriod == 0 || isInterrupted())
      checkTime(thread, site);
  }
  /// Checks the time in code that runs rarely.
  void checkTime(const Thread &thread, const KVCacheSite *site);

  /// Lets others run until the launch before has ended, if it has not.
  void waitForEarlier(const Thread &thread, const KVCacheSite *site);
  /// The thread lets later launches begin, as far as its block is concerned.
  void startDependents(Thread &thread);

  /// Ends the thread (exit).
  [[noreturn]] void exit(Thread &thread);

  //===--- Errors ---===//

  /// Ends the launch with an error of a thread: `message` follows the
  /// name of the thread, such as "reads 4 bytes at byte 64 of shared @tile,
  /// which are uninitialized".
  [[noreturn]] void fail(const Thread &thread, const KVCacheSite *site,
                         const std::string &message) const;
  /// Fails with the whole message, which names the block.
  [[noreturn]] void fail(const std::string &message) const;

  /// "block (0, 2, 0)", or "cluster (0, 1, 0)" if it has several blocks.
  std::string describe() const { return grid->describeCluster(number); }

  /// Random numbers that depend on the seed and the place of the cluster only.
  std::mt19937_64 &getRandom() { return random; }

private:
  static constexpr uint64_t kTickPeriod = 1 << 12;

  struct Deferred {
    Waitable *target;
    std::function<void()> work;
  };

  static void runThreads(void *cluster);
  void checkSpins(const Thread &thread, const KVCacheSite *site);
  static void schedule(void *cluster);
  void reserveShared();
  void fillShared();
  void reserveStacks(size_t localBytes);
  void prepareBlocks();
  void beginBlocks();
  void runNext();
  void stop();
  void stopAt(Thread &thread);
  Thread *takeRunnable();
  void resume(Fiber &fiber);
  void addFiber();
  void startNext();
  void finish(Thread &thread);
  void suspend(Thread &thread);
  bool deliverOne();
  bool releasePolls();
  std::string describeDeadlock() const;

  const Grid *grid = nullptr;
  uint64_t number = 0;
  uint32_t numThreads = 0, live = 0;
  /// The blocks. Running ones come first; the others are of larger clusters.
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t numActive = 0;
  /// Whether blocks and threads are prepared for the launch.
  bool isPrepared = false;
  /// The order in which threads begin, and how many have.
  std::vector<uint32_t> order;
  uint32_t numStarted = 0;
  std::deque<Thread *> runnable;
  std::vector<Deferred> deferred;
  bool hasProgress = false;
  /// The end of the launch before.
  struct EarlierLaunch : Waitable {
    std::string describe() const override;
  } earlier;
  /// Whether to stop before another thread runs; whether the cluster lets later
  /// launches begin, and has yet to stop there.
  bool stops = false, mustStop = false;
  /// The thread that has stopped for other clusters, and is the first to go on,
  /// as if it had not.
  Thread *givingWay = nullptr;
  /// The blocks that let later launches begin.
  uint32_t numStarting = 0;
  uint64_t numTicks = 0;
  /// Spins in a row, of all threads.
  uint64_t numSpins = 0;
  /// Seconds of the processor, of the first look at them, and of the first of
  /// many spins.
  double timeOfTick = 0, timeOfSpin = 0;
  /// The idle fibers, and all fibers.
  std::vector<Fiber *> freeFibers;
  std::vector<std::unique_ptr<Fiber>> fibers;
  /// The fiber that switches between the others, and the one that runs.
  Fiber scheduler;
  Fiber *current = nullptr;
  size_t stackBytes = 0;
  /// The memory of one block, and that of the blocks of a cluster, of which
  /// only what is used takes memory.
  struct SharedMemory;
  std::unique_ptr<SharedMemory> memory;
  std::mt19937_64 random;
  mutable std::optional<std::string> error;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTER_H
