//===- TensorQueue.h - Accesses of tensor memory in flight ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSORQUEUE_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSORQUEUE_H

#include "Sanitizer.h"
#include "TensorOrder.h"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
class Cluster;
class MBarrier;
struct Thread;

/// A product, copy or shift that a thread has issued.
struct TensorWork {
  Thread *thread;
  const KVCacheSite *site;
  /// The number of the work in its thread (`TensorOrder::issue`).
  uint32_t number = 0;
  /// Whose tensor memory it accesses: the block of the thread, or a pair.
  std::vector<Block *> blocks;
  /// The bytes of shared memory that it reads.
  std::vector<Sanitizer::Copy> reads;
  std::function<void()> run;
};

/// The work that threads of a cluster have issued on tensor memory. It is
/// executed as late as possible: before a thread continues that waits for a
/// later commit.
class TensorQueue {
public:
  explicit TensorQueue(Cluster &cluster) : cluster(cluster) {}

  void begin();
  /// The end of a block: fails if anything is in flight that it has issued, or
  /// that accesses its tensor memory or one of its mbarriers.
  void end(const Block &block);

  void issue(TensorWork work);
  /// An arrival at the barrier, which may be one of another block, when all is
  /// done that the thread has issued.
  void commit(Thread &thread, const KVCacheSite *site, MBarrier &barrier);

private:
  struct Commit {
    MBarrier *barrier;
    Thread *thread;
    const KVCacheSite *site;
    TensorOrder::Commit known;
    /// The ends of copies that the thread has waited for.
    Clocks copies;
    /// How many of all must have happened.
    uint64_t numIssued;
  };

  void deliver(Commit &commit);
  void completeReads(const Commit &commit, const Order::End &end);
  void notePeers(const Commit &commit);

  Cluster &cluster;
  /// The issued work that is not executed yet, in order, and the number of
  /// executed ones.
  std::deque<TensorWork> inFlight;
  uint64_t numHappened = 0;
  /// The executed work for which no thread has waited.
  std::vector<TensorWork> happened;
  std::vector<std::shared_ptr<Commit>> commits;
  /// By thread, the ends of reads.
  std::vector<Clocks> ends;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSORQUEUE_H
