//===- Sanitizer.h - Checked accesses of shared memory ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_SANITIZER_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_SANITIZER_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// What a release tells to whoever acquires: which accesses happened before.
struct Knowledge {
  /// By thread; behind the threads one clock for each set of copies that
  /// complete together.
  std::vector<uint32_t> seen;
  /// The same, of those that a proxy fence has made visible to copies.
  std::vector<uint32_t> fenced;
  /// The clock in `seen` of the copies that complete on what this belongs to;
  /// -1 if there were none.
  int32_t copies = -1;

  void clear() { *this = {}; }
};

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
  void complete(Copy copy, Knowledge &into);
  /// The copy is done, which the thread learns.
  void complete(Copy copy, Thread &thread);

  //===--- mbarriers ---===//

  /// The 8 bytes at `offset` are an mbarrier, which plain accesses must not
  /// touch, until it is invalidated.
  void placeBarrier(Thread &thread, const KVCacheSite *site, uint32_t offset);
  void removeBarrier(Thread &thread, const KVCacheSite *site, uint32_t offset);

  /// The end of the block: fails if a copy is in flight.
  void end();

private:
  Block &block;
  bool isOn = false;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_SANITIZER_H
