//===- AsyncCopies.h - Copies that are in flight ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_ASYNCCOPIES_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_ASYNCCOPIES_H

#include "Block.h"
#include "MBarrier.h"

#include <array>
#include <vector>

namespace mlir::kvcache::emulator {

/// Bytes in one piece of global memory, and where they are in a box: the box as
/// one array without a swizzle.
struct GlobalPiece {
  char *address;
  uint32_t bytes;
  uint32_t place;
};

/// A copy between global memory and a range of shared memory of the cluster,
/// which a thread has issued.
struct BoxCopy {
  Thread *thread;
  const KVCacheSite *site;
  SharedRange range;
  /// The pieces of the box that are in bounds.
  std::vector<GlobalPiece> pieces;
  /// The bits of 16-byte units that a swizzle changes: 7, 3, 1 or 0.
  uint32_t swizzleMask = 0;
  /// Which of each 16 bytes a store writes.
  uint32_t byteMask = 0xffff;

  Block &getBlock() const { return *thread->block; }
  int64_t countGlobalBytes() const;

  /// Checks the pieces, which the copy is going to read or to write.
  Sanitizer::Copy issueGlobalRead(Unwritten &unwritten) const;
  Sanitizer::Copy issueGlobalWrite() const;
  /// The bytes of shared memory that a store writes to global memory: 1 for
  /// each of the range, or 0.
  std::vector<char> getStored() const;
  /// Poisons the bytes of shared memory that a load fills with unwritten bytes.
  void poison(const Unwritten &unwritten) const;
  /// Counts the copy, and the sectors of its pieces.
  void meter(CopyKind kind, bool isWrite) const;

  /// Reads the box from global memory, with zeros out of bounds.
  std::vector<char> readGlobal() const;
  void writeGlobal(const std::vector<char> &data) const;
  std::vector<char> readShared() const;
  void writeShared(const std::vector<char> &data) const;

private:
  std::vector<GlobalRange> getRanges(bool writes) const;
  std::vector<char> toShared(const std::vector<char> &box) const;
  template <typename F> void forEachUnit(const F &f) const;
};

/// A store to global memory by tensor or bulk copy.
struct BulkStore {
  BoxCopy box;
  /// The sanitizer's handles of the bytes read, and of the bytes written.
  Sanitizer::Copy handle = 0, destination = Sanitizer::kNoCopy;
  /// The bytes read from shared memory.
  std::vector<char> data;
  bool hasRead = false, isDone = false;

  void read();
  void finish();
};

/// Overwrites the destination of a copy that is in flight from now on.
void poison(const Block &block, SharedRange range);

/// Where a copy to shared memory goes: to a block of the cluster.
struct Destination {
  Block *block;
  MBarrier *barrier;
  /// The place in the shared memory of the cluster.
  uint32_t offset;
};

/// The destinations of a copy of `bytes` to `shared`, which completes on the
/// mbarrier at `barrier`; with a mask that is not negative, to the same place
/// of each block whose rank is in it. If `isOfPair`, the barrier may be one of
/// the other block of a pair. Fails as an error of the thread where that can't
/// be.
std::vector<Destination> getDestinations(Thread &thread,
                                         const KVCacheSite *site,
                                         const void *shared,
                                         const void *barrier, int64_t bytes,
                                         int32_t mask, bool isOfPair = false);

/// Issues a load to shared memory: it is done in time, and then counts the
/// bytes of its range on the barriers. The copy has no place yet.
void issueLoads(const BoxCopy &box,
                const std::vector<Destination> &destinations);
/// Issues a store to global memory, as part of the thread's open group.
void issueStore(BoxCopy box);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_ASYNCCOPIES_H
