//===- TensorOrder.h - Order of accesses of tensor memory -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Memory Consistency Model for 5th generation of TensorCore
// operations": accesses of tensor memory are asynchronous, and only some pairs
// of them keep their order. Others are ordered by a wait of the warp
// (tcgen05.wait) or a commit to an mbarrier; between threads, with fences
// around what synchronizes them.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_TENSORORDER_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_TENSORORDER_H

#include "Order.h"
#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
class Cluster;
struct Thread;

/// Instructions that access tensor memory. A copy of 4 lanes has rules of its
/// own; a dealloc needs all others to be done.
enum class TensorOp : uint8_t {
  Load,
  Store,
  Multiply,
  Copy,
  CopyOfFour,
  Shift,
  Dealloc
};

/// An instruction that accesses tensor memory: one of a warp, or one that a
/// thread has issued.
struct TensorAccess {
  const KVCacheSite *site = nullptr;
  TensorOp op = TensorOp::Load;
  /// The index in the cluster of the thread that has issued it; of a warp, of
  /// lane 0.
  uint32_t thread = 0;
  /// How many loads, stores or others the warp or thread has issued with it.
  uint32_t number = 0;
  /// Products into one accumulator, of one shape and kind, keep their order.
  uint64_t accumulator = 0;

  bool isOfWarp() const {
    return op == TensorOp::Load || op == TensorOp::Store ||
           op == TensorOp::Dealloc;
  }
};

/// A word of the tensor memory of a block.
struct TensorPlace {
  const Block *block;
  uint32_t lane, column;
};

/// The order of the accesses of tensor memory by the blocks of a cluster, whose
/// pairs access that of each other.
class TensorOrder {
public:
  explicit TensorOrder(Cluster &cluster) : cluster(cluster) {}

  void begin();

  //===--- What threads do ---===//

  /// The number of the next load, store or other access of a thread's warp or
  /// of the thread.
  uint32_t issue(const Thread &thread, TensorOp op);
  /// The warp of the thread has waited for all its loads, or stores.
  void wait(const Thread &thread, TensorOp op);
  bool hasWaited(const Thread &thread, TensorOp op, uint32_t number) const;
  /// The thread publishes what is done (fence::before_thread_sync), or
  /// acquires what is published (fence::after_thread_sync).
  void fenceBefore(const Thread &thread);
  void fenceAfter(const Thread &thread);

  /// The work that a commit publishes.
  struct Commit {
    uint32_t thread, loads, stores, others;
  };
  Commit commit(const Thread &thread) const;
  /// All operations of the commit are done, before `event`.
  void complete(const Commit &commit, const Order::Event &event);
  /// Whether a commit after an access by this thread has completed.
  bool isComplete(uint32_t thread, uint32_t number) const;

  //===--- Words of tensor memory ---===//

  /// The accesses of a word that later ones must be ordered after. 0 if there
  /// are none.
  using History = uint32_t;

  /// Begins an access, whose words `touch` gets.
  void begin(const TensorAccess &access);
  /// The history of a word after the access. Fails if it isn't ordered after
  /// one of `history`; `place` is for the report.
  History touch(History history, bool isWrite, const TensorPlace &place) {
    auto &known = isWrite ? written : read;
    auto found = known.find(history);
    return found != known.end() ? found->second
                                : advance(history, isWrite, place);
  }

private:
  /// The work of a thread and its warp that an event publishes: loads and
  /// stores that it has waited for, and other work that is issued or done.
  struct Publication {
    uint32_t loads, stores, issued, done;
    Order::Event event;
  };
  struct ThreadState {
    uint32_t issued = 0;
    /// By fences, and by commits.
    std::vector<Publication> fences, commits;
    /// The clocks of the thread at its last fence.
    Clocks known;
  };
  struct WarpState {
    uint32_t loads = 0, stores = 0, waitedLoads = 0, waitedStores = 0;
  };
  /// The last write of a word, and the reads since; numbers of accesses. 0 for
  /// none.
  struct Accesses {
    uint32_t write = 0;
    std::vector<uint32_t> reads;
    bool operator<(const Accesses &other) const {
      return write != other.write ? write < other.write : reads < other.reads;
    }
  };

  History advance(History history, bool isWrite, const TensorPlace &place);
  History add(Accesses next);
  /// Why the access that has begun is not ordered after `before`, or nothing
  /// if it is.
  std::optional<std::string> findProblem(const TensorAccess &before,
                                         bool isOverwritten) const;
  std::optional<std::string> findProblem(const TensorAccess &before,
                                         bool isOverwritten,
                                         const Thread &thread) const;
  bool keepsOrder(const TensorAccess &before, bool isOverwritten) const;
  bool isKnown(const Thread &thread, const Order::Event &event) const;
  template <typename Predicate>
  bool isPublished(uint32_t publisher, const Thread &thread,
                   Predicate isPublic) const;
  Publication getPublication(const Thread &thread) const;
  /// The state of a thread, by its index in the cluster.
  ThreadState &getThread(uint32_t index);
  /// The number in the cluster of the thread's warp.
  uint32_t getWarpNumber(const Thread &thread) const;
  WarpState &getWarp(const Thread &thread);
  std::string describe(const TensorAccess &access, const Thread &other) const;

  Cluster &cluster;
  std::vector<ThreadState> threads;
  std::vector<WarpState> warps;
  std::vector<TensorAccess> accesses;
  std::vector<Accesses> histories;
  std::map<Accesses, History> numbers;
  /// The histories after the current access, by those before it.
  std::unordered_map<History, History> read, written;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_TENSORORDER_H
