//===- Sanitizer.h - Checked accesses of shared memory ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_SANITIZER_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_SANITIZER_H

#include "Order.h"
#include "Shadow.h"
#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// Bytes of a block's shared memory.
struct SharedRange {
  uint32_t offset, bytes;
};

/// Which path to memory a copy takes: cp.async takes that of loads and stores,
/// tensor and bulk copies the asynchronous one.
enum class Proxy : uint8_t { Generic, Async };

/// Finds accesses of shared memory that are not ordered, that read what nobody
/// has written, and that touch what a copy has in flight. Every function that
/// finds something ends the launch (`Block::fail`). Nothing happens, and little
/// time is spent, when it is off.
class Sanitizer {
public:
  explicit Sanitizer(Block &block) : block(block) {}

  /// Forgets everything, for a block of so many threads and bytes.
  void begin(bool isOn, uint32_t numThreads, uint32_t sharedBytes);

  /// An access by a thread, with the flags of `kvcacheEmulatorAccess`.
  void access(Thread &thread, const KVCacheSite *site, SharedRange range,
              uint32_t flags);

  //===--- Order ---===//

  /// What the thread knows goes into `into`.
  void release(Thread &thread, Knowledge &into);
  /// The thread learns what is in `from`.
  void acquire(Thread &thread, const Knowledge &from);
  /// Threads meet: each learns what the others know. (bar.sync of the block or
  /// of some warps, bar.warp.sync.)
  void synchronize(const std::vector<Thread *> &threads);
  /// Around an atomic access of memory of any kind: the thread learns what
  /// those know that wrote the value that it reads, and tells what it knows to
  /// those that read what it writes. All atomic accesses count as acq_rel,
  /// since fences make relaxed ones so.
  void acquireAtomic(Thread &thread, const void *pointer, uint32_t flags);
  void releaseAtomic(Thread &thread, const void *pointer, uint32_t flags);
  /// Accesses ordered before become visible to copies that are ordered behind
  /// (fence.proxy.async).
  void fenceProxy(Thread &thread);

  //===--- Copies ---===//

  /// A copy that the thread issues and that is not done.
  using Copy = uint32_t;

  /// A copy that is going to write the range: until it completes, nobody may
  /// touch it.
  Copy issueWrite(Thread &thread, const KVCacheSite *site, SharedRange range,
                  Proxy proxy);
  /// A copy that is going to read the range: until it completes, nobody may
  /// write it.
  Copy issueRead(Thread &thread, const KVCacheSite *site, SharedRange range,
                 Proxy proxy);
  /// The copy is done, which whoever acquires `into` learns.
  Order::End complete(Copy copy, Knowledge &into);
  /// The copy is done, which the thread learns.
  Order::End complete(Copy copy, Thread &thread);
  /// The ends of all copies by the thread itself (cp.async) that are done.
  Clocks getCopies(const Thread &thread);
  /// Whoever acquires `into` learns that copies are done, and nothing else.
  void releaseCopies(const Clocks &ends, Knowledge &into);
  void releaseCopy(const Order::End &end, Knowledge &into);

  //===--- mbarriers ---===//

  /// The 8 bytes at `offset` are an mbarrier, which plain accesses must not
  /// touch, until it is invalidated.
  void placeBarrier(Thread &thread, const KVCacheSite *site, uint32_t offset);
  /// An operation on that mbarrier: somebody must have placed it before.
  void useBarrier(const Thread &thread, const KVCacheSite *site,
                  uint32_t offset);
  void removeBarrier(Thread &thread, const KVCacheSite *site, uint32_t offset);

  /// The end of the block: fails if a copy is in flight.
  void end();

  /// What an access does, and how it relates to one before it.
  enum class Kind : uint8_t { Read, Write, AtomicRead, AtomicWrite };
  enum class Relation : uint8_t { Ordered, Unordered, Unfenced, InFlight };

private:
  struct CopyState {
    const KVCacheSite *site;
    SharedRange range;
    uint32_t issuer;
    Proxy proxy;
    bool isWrite, isInFlight;
    /// The cells that stand for it.
    uint32_t numCells;
    /// When it is done: it is like an access by that one then.
    Order::End end;
  };

  /// What a thread, or a copy that it issues, is about to do.
  struct Access {
    const Thread &thread;
    const KVCacheSite *site;
    SharedRange range;
    Kind kind;
    bool reads, isAsync;
    std::optional<Copy> copy;
  };
  struct Rules;

  void touch(const Access &access);
  void compact(const Access &access, Granule &granule);
  void checkGranule(const Access &access, const Granule &granule,
                    uint32_t index, uint16_t mask) const;
  void checkList(const Access &access, const CellList &list, Kind kind,
                 uint32_t index, uint16_t mask) const;
  Relation relate(const Access &access, const Cell &cell, Kind kind) const;
  void note(const Access &access, Granule &granule, uint16_t mask);
  Granule &getGranule(uint32_t index);
  Knowledge &getKnowledge(const void *atomic);

  Copy issue(Thread &thread, const KVCacheSite *site, SharedRange range,
             Proxy proxy, Kind kind);
  Order::End finish(Copy copy, Order::End end);
  void forget(Copy copy);

  std::string describe(const Access &access) const;
  std::string describe(const CopyState &copy) const;
  std::string describeAccess(const Cell &cell, Kind kind) const;
  std::string describeConflict(const CopyState &copy, Relation relation) const;
  std::string describeConflict(const Access &access, const Cell &cell,
                               Kind kind) const;
  [[noreturn]] void fail(const Access &access, uint32_t index, uint16_t mask,
                         const std::string &what) const;

  Block &block;
  bool isOn = false;
  /// Counts the blocks, so that granules of earlier ones are told apart.
  uint32_t run = 0;
  Order order;
  std::unique_ptr<Granule[]> granules;
  uint32_t numGranules = 0;
  CellPool pool;
  /// What atomic accesses tell, by address; of the addresses that come when
  /// these are many already, what all of them tell.
  std::unordered_map<const void *, Knowledge> atomics;
  Knowledge otherAtomics;
  std::vector<CopyState> copies;
  /// Whether anything tells that copies write shared memory: one of them, or an
  /// mbarrier that may wait for some.
  bool hasCopies = false;
  /// The numbers that are free again.
  std::vector<Copy> freeCopies;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_SANITIZER_H
