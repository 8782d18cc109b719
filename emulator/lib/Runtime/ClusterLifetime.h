//===- ClusterLifetime.h - Other blocks of a cluster ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERLIFETIME_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERLIFETIME_H

#include "Order.h"
#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
class Cluster;
struct Thread;

/// The order of the beginnings and ends of threads in a cluster. The shared
/// memory of another block may be accessed from its first thread to its last
/// (CUDA C++ Programming Guide, "Distributed Shared Memory"): a thread that
/// accesses it must be ordered after the beginning of one, and before the end
/// of one. Relaxed synchronization suffices, which does not order accesses of
/// memory (`Order`).
///
/// A thread counts the places that others are ordered after: its beginning is
/// place 1, every access of another block's shared memory is one, and every
/// fence of the mbarriers that it has initialized. Nothing happens where there
/// is one block, or nothing is sanitized.
class ClusterLifetime {
public:
  explicit ClusterLifetime(Cluster &cluster) : cluster(cluster) {}

  void begin();

  /// The thread publishes its place, and those that it has acquired.
  void release(const Thread &thread, Clocks &into);
  void acquire(const Thread &thread, const Clocks &from);
  void synchronize(const std::vector<Thread *> &threads);

  /// Fails if the thread must not access the shared memory of another block:
  /// none of its threads may have begun, or all have ended.
  void check(const Thread &thread, const KVCacheSite *site, const Block &peer);
  /// The thread accesses it, at the same site if that was checked.
  void note(const Thread &thread, const KVCacheSite *site, const Block &peer);
  /// The last thread of a block has ended: fails if others may still access its
  /// shared memory.
  void checkEnd(const Block &block) const;

  /// The thread fences mbarriers that it has initialized. Returns the place; 0
  /// where nothing happens.
  uint32_t addPlace(const Thread &thread);
  /// Whether the thread is ordered after a place of another one.
  bool isAfter(const Thread &thread, const Thread &other, uint32_t place) const;

private:
  /// The last access of a block's shared memory.
  struct Access {
    uint32_t place = 0, clock = 0;
    const KVCacheSite *site = nullptr;
  };
  struct State {
    uint32_t place = 1;
    Clocks known;
    /// By rank: whether its beginning is ordered before, and accesses of it.
    std::vector<bool> hasBegun;
    std::vector<Access> accesses;
  };

  bool isAfterBegin(const Thread &thread, const Block &peer) const;
  bool isOrderedAccess(const Block &block, uint32_t who,
                       const Access &access) const;

  Cluster &cluster;
  /// By thread; empty where nothing happens.
  std::vector<State> states;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERLIFETIME_H
