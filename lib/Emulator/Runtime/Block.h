//===- Block.h - The threads of a block and their schedule ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_BLOCK_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_BLOCK_H

#include "Barriers.h"
#include "CopyQueue.h"
#include "Fiber.h"
#include "Grid.h"
#include "Interrupt.h"
#include "MBarriers.h"
#include "Meter.h"
#include "Sanitizer.h"
#include "Variables.h"
#include "Warps.h"
#include "kvcache/Emulator/ABI.h"

#include <algorithm>
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
struct Thread;

inline constexpr uint32_t kWarpSize = 32;

/// "0 to 31 and 40".
std::string listRanges(const std::vector<uint32_t> &sorted);

/// What threads of a block can wait for.
class Waitable {
public:
  virtual ~Waitable() = default;

  /// For the report of a deadlock, such as "the mbarrier at byte 64 of shared
  /// @full, in phase 3, which has 127 of 128 arrivals and 0 of 16384 bytes".
  virtual std::string describe() const = 0;

  /// The threads that wait, in the order in which they came.
  std::vector<Thread *> waiters;
};

/// A thread of the block that runs. Compiled code sees the base.
struct Thread : KVCacheThread {
  Block *block = nullptr;
  /// In the block, x innermost.
  uint32_t index = 0;
  bool hasEnded = false;
  /// What the thread waits for and where; null while it can run.
  Waitable *waitsFor = nullptr;
  const KVCacheSite *waitsAt = nullptr;
  /// Whether the thread only polls, and whether it found nothing.
  bool polls = false, pollsInVain = false;
  CopyQueue copies;
  /// What the thread has printed last.
  std::string printed;
  Fiber *fiber = nullptr;
  Variables variables;
  /// What `poison` points to where there is any.
  char poisonedBytes[KVCachePoisonBytes];

  /// Tells compiled code what nobody has written of what it reads.
  void setPoison(const Poison &read);

  /// The thread that compiled code runs as.
  static Thread &get(KVCacheThread *thread) {
    return *static_cast<Thread *>(thread);
  }
};

/// A block, from its first thread to its last. One thread of the host runs all
/// of it, and uses the object for one block after another.
class Block {
public:
  Block();
  ~Block();
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  /// Begins with the block at `ctaid` in the grid.
  void begin(const Grid &grid, const uint32_t (&ctaid)[3]);
  /// Goes on until the block has ended or failed. False if it stops before
  /// that: until the launch before has ended, or where later launches may begin
  /// (`Grid::isAhead`, `Grid::stopsForDependents`).
  bool goOn();
  /// The block has ended. Returns what is wrong with the kernel, if anything
  /// is.
  std::optional<std::string> finish();

  //===--- What functions that compiled code calls may use ---===//

  std::deque<Thread> threads;
  /// The block's shared memory, where places begin (`SharedVariables`).
  char *shared = nullptr;

  Sanitizer sanitizer{*this};
  Barriers barriers{*this};
  MBarriers mbarriers{*this};
  Warps warps{*this};
  Meter meter;

  const Grid &getGrid() const { return *grid; }
  bool isSanitized() const { return grid->module->isSanitized; }
  const uint32_t (&getPlace() const)[3] { return ctaid; }
  /// The number of threads, and of those that have not ended.
  uint32_t size() const { return numThreads; }
  uint32_t numLive() const { return live; }
  /// Whether it is the last of the launch.
  bool isLast() const {
    return std::equal(ctaid, ctaid + 3, grid->blocks,
                      [](uint32_t at, uint32_t end) { return at + 1 == end; });
  }

  /// Whether `pointer` is in the block's shared memory, or in a red zone of it.
  bool isShared(const void *pointer) const {
    return pointer >= shared - grid->sharedVariables.redZoneBytes() &&
           pointer < shared + grid->sharedVariables.size();
  }
  /// The place (`SharedVariables`) of a pointer to `bytes` of shared memory.
  /// Fails as an error of `thread` if they may not be accessed.
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

  /// Lets others run until `wake`. The caller looks again then at what it waits
  /// for, since it may have been woken for another reason.
  void wait(Thread &thread, const KVCacheSite *site, Waitable &what);

  /// Like `wait`, but returns false, rather than being part of a deadlock, if
  /// nothing in the block can go on without this thread.
  bool poll(Thread &thread, const KVCacheSite *site, Waitable &what);

  /// Lets all threads go on that wait for `what`.
  void wake(Waitable &what);

  /// Something has happened that others may wait for, such as an arrival: as
  /// long as that goes on, threads that poll are no deadlock.
  void noteProgress() { hasProgress = true; }

  /// Puts `work` off until no thread of the block can go on, and one waits for
  /// `target`; of several pieces one at a time, in an order that the seed
  /// gives. If the module isn't sanitized, it runs at once.
  void defer(Waitable &target, std::function<void()> work);

  /// Lets the others run that can, then this thread again. To spin while nobody
  /// makes progress is an error in the end. False if there were no others.
  bool spin(Thread &thread, const KVCacheSite *site);

  /// Comes to a place that loops come to. Fails if the launch is interrupted,
  /// or if the block has taken more of the processor's time than one may
  /// (KVCACHE_EMULATOR_TIMEOUT).
  void tick(const Thread &thread, const KVCacheSite *site) {
    if (++numTicks % kTickPeriod == 0 || isInterrupted())
      checkTime(thread, site);
  }
  /// The same, for what comes there rarely.
  void checkTime(const Thread &thread, const KVCacheSite *site);

  /// Lets others run until the launch before has ended, if it has not.
  void waitForEarlier(const Thread &thread, const KVCacheSite *site);
  /// The thread lets later launches begin, as far as the block is concerned.
  void startDependents(Thread &thread);

  /// Ends the thread (exit).
  [[noreturn]] void exit(Thread &thread);

  /// Ends the launch with an error of a thread: `message` goes on behind the
  /// name of the thread, such as "reads 4 bytes at byte 64 of shared @tile,
  /// which nobody has written".
  [[noreturn]] void fail(const Thread &thread, const KVCacheSite *site,
                         const std::string &message) const;
  /// The same, with the whole message, which names the block.
  [[noreturn]] void fail(const std::string &message) const;

  /// "byte 64 of shared @tile".
  std::string describeShared(uint32_t place) const {
    return grid->sharedVariables.describe(place);
  }

  /// "thread (1, 0, 0)", "block (0, 2, 0)".
  static std::string describe(const Thread &thread);
  std::string describe() const;
  /// The block of a number in the launch.
  std::string describe(uint64_t number) const;
  /// "llvm.store at gather.mlir:12:3".
  static std::string describe(const KVCacheSite *site);
  /// An error of a thread, as `fail` reports it.
  std::string describe(const Thread &thread, const KVCacheSite *site,
                       const std::string &message) const;

  /// Random numbers that depend on the seed and the place of the block only.
  std::mt19937_64 &getRandom() { return random; }

private:
  [[noreturn]] void failAlignment(const Thread &thread, const KVCacheSite *site,
                                  const void *pointer,
                                  uint64_t alignment) const;

  static constexpr uint64_t kTickPeriod = 1 << 12;

  struct Deferred {
    Waitable *target;
    std::function<void()> work;
  };

  static void runThreads(void *block);
  void checkSpins(const Thread &thread, const KVCacheSite *site);
  void beginThread(uint32_t index);
  static void schedule(void *block);
  void reserveShared();
  void reserveStacks(size_t localBytes);
  void end();
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
  uint32_t ctaid[3] = {};
  uint32_t numThreads = 0, live = 0;
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
  /// Whether to stop before another thread runs; whether the block lets later
  /// launches begin, and has yet to stop there.
  bool stops = false, hasStartedDependents = false, mustStop = false;
  uint64_t numTicks = 0;
  /// Spins in a row, of all threads.
  uint64_t numSpins = 0;
  /// Seconds of the processor, of the first look at them, and of the first of
  /// many spins.
  double timeOfTick = 0, timeOfSpin = 0;
  /// Those that run nothing, and all.
  std::vector<Fiber *> freeFibers;
  std::vector<std::unique_ptr<Fiber>> fibers;
  /// The fiber that switches between the others, and the one that runs.
  Fiber scheduler;
  Fiber *current = nullptr;
  size_t stackBytes = 0;
  /// The allocation that `shared` is in, and its size.
  char *sharedBegin = nullptr;
  size_t sharedCapacity = 0;
  std::mt19937_64 random;
  mutable std::optional<std::string> error;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_BLOCK_H
