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

/// How far threads of a cluster know that others have come. The shared memory
/// of another block may be accessed from its first thread to its last (CUDA C++
/// Programming Guide, "Distributed Shared Memory"): a thread that accesses it
/// must know that one has begun, and one must know of the access before all
/// have ended. For that it doesn't matter whether what tells them orders
/// accesses of memory as well (`Order`).
///
/// A thread counts the places that others may have to know of: its beginning is
/// place 1, every access of another block's shared memory is one, and every
/// fence of the mbarriers that it has initialized. Nothing happens where there
/// is one block, or nothing is sanitized.
class ClusterLifetime {
public:
  explicit ClusterLifetime(Cluster &cluster) : cluster(cluster) {}

  void begin();

  /// The thread tells how far it has come, and what it knows of others.
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
  /// Whether the thread knows that another one has come to a place.
  bool knows(const Thread &thread, const Thread &other, uint32_t place) const;

private:
  /// The last access of a block's shared memory.
  struct Access {
    uint32_t place = 0, clock = 0;
    const KVCacheSite *site = nullptr;
  };
  struct State {
    uint32_t place = 1;
    Clocks known;
    /// By rank: whether it is known to have begun, and accesses of it.
    std::vector<bool> hasBegun;
    std::vector<Access> accesses;
  };

  bool knowsBegin(const Thread &thread, const Block &peer) const;
  bool knowsAccess(const Block &block, uint32_t who,
                   const Access &access) const;

  Cluster &cluster;
  /// By thread; empty where nothing happens.
  std::vector<State> states;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_CLUSTERLIFETIME_H
