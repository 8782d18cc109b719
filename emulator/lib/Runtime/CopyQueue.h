//===- CopyQueue.h - The copies that a thread waits for ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_COPYQUEUE_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_COPYQUEUE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

struct AsyncCopy;
struct BulkStore;
struct Thread;

/// Copies in the groups in which a thread waits for them.
template <typename CopyT> class CopyGroups {
public:
  using Group = std::vector<std::shared_ptr<CopyT>>;

  void add(std::shared_ptr<CopyT> copy) { open.push_back(std::move(copy)); }
  void commit() {
    groups.push_back(std::move(open));
    open.clear();
  }

  /// Calls `f` for all copies in groups but the last `count`, and forgets those
  /// unless `keep` is set.
  template <typename F> void wait(uint64_t count, bool keep, const F &f) {
    size_t ready = groups.size() > count ? groups.size() - count : 0;
    for (size_t i = 0; i < ready; ++i)
      for (const std::shared_ptr<CopyT> &copy : groups[i])
        f(*copy);
    if (!keep)
      groups.erase(groups.begin(), groups.begin() + ready);
  }

  /// Forgets copies that are done though no thread has waited for their groups:
  /// the oldest, since what completes some completes all before.
  void forgetDone() {
    while (!groups.empty() && dropDone(groups.front()))
      groups.pop_front();
    if (groups.empty())
      dropDone(open);
  }

  /// All copies that have not been waited for, the oldest first.
  Group getAll() const {
    Group all;
    for (const Group &group : groups)
      all.insert(all.end(), group.begin(), group.end());
    all.insert(all.end(), open.begin(), open.end());
    return all;
  }

  bool isEmpty() const { return groups.empty() && open.empty(); }

  void clear() {
    groups.clear();
    open.clear();
  }

private:
  /// Returns whether none is left.
  static bool dropDone(Group &group) {
    auto isInFlight = [](const std::shared_ptr<CopyT> &copy) {
      return !copy->isDone;
    };
    group.erase(group.begin(),
                std::find_if(group.begin(), group.end(), isInFlight));
    return group.empty();
  }

  std::deque<Group> groups;
  /// The copies that are in no group yet.
  Group open;
};

/// The copies of a thread that it waits for by groups: those by cp.async, and
/// bulk copies to global memory. Empty in modules that are not sanitized, where
/// copies happen at once.
struct CopyQueue {
  CopyGroups<AsyncCopy> asyncCopies;
  CopyGroups<BulkStore> bulkStores;

  bool isEmpty() const { return asyncCopies.isEmpty() && bulkStores.isEmpty(); }

  void clear() {
    if (isEmpty())
      return;
    asyncCopies.clear();
    bulkStores.clear();
  }

  /// The end of the block: stores to global memory happen, and everything that
  /// is in flight in shared memory is an error of the thread.
  void end(Thread &thread);
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_COPYQUEUE_H
