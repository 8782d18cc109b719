//===- MBarrier.h - One mbarrier --------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_MBARRIER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_MBARRIER_H

#include "Block.h"

#include <vector>

namespace mlir::kvcache::emulator {

/// An mbarrier of a block. PTX ISA, "mbarrier: Contents of the mbarrier
/// object". The thread that breaks a rule gets the error.
class MBarrier : public Waitable {
public:
  /// The largest number of arrivals, and of bytes to come.
  static constexpr int64_t kMaxCount = (1 << 20) - 1;

  MBarrier(Block &block, uint32_t offset) : block(block), offset(offset) {}

  /// The state of the barrier's memory.
  enum class State : uint8_t { Unused, Valid, Invalidated };
  State getState() const { return state; }

  Block &getBlock() const { return block; }
  /// "the mbarrier at byte 64 of shared @full".
  std::string getName() const;
  std::string describe() const override;

  /// For the barrier of another block, at the same place.
  void reset();
  void init(Thread &thread, const KVCacheSite *site, int64_t count);
  void invalidate(Thread &thread, const KVCacheSite *site);

  /// Fails if nothing orders the use after the init.
  void noteUse(const Thread &thread, const KVCacheSite *site) const;

  //===--- Arrivals ---===//

  /// By a thread of the cluster, with flags of `kvcacheEmulatorMBarrierArrive`.
  void arrive(Thread &thread, const KVCacheSite *site, int64_t count,
              uint32_t flags);
  void expect(Thread &thread, const KVCacheSite *site, int64_t bytes);
  void complete(Thread &thread, const KVCacheSite *site, int64_t bytes);

  /// The phase waits for one arrival more, which comes when the thread's copies
  /// are done.
  void addArrival(Thread &thread, const KVCacheSite *site);
  /// An arrival that orders nothing but what is in `getReleaseClock()` already.
  void arriveByCopies(Thread &thread, const KVCacheSite *site);

  //===--- Copies ---===//

  /// A copy that counts `bytes` here, or arrives, when it is done.
  void beginCopy(Thread &thread, const KVCacheSite *site, int64_t bytes);
  /// The copy at this site has been done. Its bytes or arrivals are counted
  /// afterwards.
  void endCopy(Thread &thread, const KVCacheSite *site, int64_t bytes);
  /// Publishes the place of the thread to threads that wait for the current
  /// phase (`ClusterLifetime`).
  void notePlaces(const Thread &thread) {
    block.cluster.lifetime.release(thread, gatheredPlaces);
  }
  /// The clocks that waiting threads acquire at the end of the current phase.
  ReleaseClock &getReleaseClock() { return gathered; }
  /// The end of the block: fails if something is expected or in flight.
  void checkEnd() const;

  //===--- Waiting ---===//

  int64_t getPhase() const { return phase; }
  /// The number of the phase that `parity` stands for: the present one or that
  /// before. PTX ISA, "mbarrier.test_wait, mbarrier.try_wait".
  int64_t getPhaseOf(uint32_t parity) const {
    return (phase & 1) == (parity & 1) ? phase : phase - 1;
  }
  bool hasCompleted(int64_t which) const { return phase > which; }
  /// Waits until the phase has completed. With `isTest` gives up, and returns
  /// false, if nothing in the block can go on without the thread; when
  /// sanitizing also for no reason, which chips may do as well.
  bool wait(Thread &thread, const KVCacheSite *site, int64_t which, bool isTest,
            uint32_t flags);

  /// By which fences have to precede copies that use the barrier: the place of
  /// its init in the order of those, and the thread.
  uint64_t initTime = 0;
  const Thread *initThread = nullptr;
  /// Where it has been initialized.
  const KVCacheSite *initSite = nullptr;
  /// The place of the thread's first fence after that (`ClusterLifetime`), or
  /// 0: threads ordered after it may use the barrier (fence.mbarrier_init).
  uint32_t initPlace = 0;

private:
  struct Copy {
    Thread *thread;
    const KVCacheSite *site;
    int64_t bytes;
  };

  std::string countArrivals() const;
  std::string countBytes() const;
  void checkBytes(const Thread &thread, const KVCacheSite *site,
                  int64_t bytes) const;
  void take(Thread &thread, const KVCacheSite *site, int64_t count);
  void update();
  void completePhase();
  bool givesUp(const Thread &thread);
  void release(Thread &thread, uint32_t flags);
  void acquire(Thread &thread, uint32_t flags);

  Block &block;
  const uint32_t offset;
  State state = State::Unused;
  int64_t phase = 0;
  /// Arrivals that a phase waits for, those that the present one still waits
  /// for, and those that have arrived.
  int64_t expected = 0, pending = 0, arrived = 0;
  /// The bytes of the current phase. More bytes may be complete than are
  /// expected as yet.
  int64_t expectedBytes = 0, completedBytes = 0;
  std::vector<Copy> copies;
  /// The clocks of the current phase and of the last one. In a cluster of
  /// several blocks they also hold what threads of this block release with
  /// block scope, and the places of arrived threads (`ClusterLifetime`).
  ReleaseClock gathered, completed;
  ReleaseClock gatheredOfBlock, completedOfBlock;
  Clocks gatheredPlaces, completedPlaces;
  /// The threads, by index, that have given up in the present phase.
  std::vector<bool> hasGivenUp;
  /// Threads in `wait`, also those that have been woken.
  uint32_t numWaiting = 0;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_MBARRIER_H
