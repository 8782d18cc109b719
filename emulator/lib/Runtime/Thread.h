//===- Thread.h - A thread, and what it can wait for ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_THREAD_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_THREAD_H

#include "CopyQueue.h"
#include "Fiber.h"
#include "Poison.h"
#include "Variables.h"
#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

inline constexpr uint32_t kWarpSize = 32;

/// "0 to 31 and 40".
std::string listRanges(const std::vector<uint32_t> &sorted);

/// An event that threads can wait for.
class Waitable {
public:
  virtual ~Waitable() = default;

  /// For the report of a deadlock, such as "the mbarrier at byte 64 of shared
  /// @full, in phase 3, which has 127 of 128 arrivals and 0 of 16384 bytes".
  virtual std::string describe() const = 0;

  /// The threads that wait, in the order of their arrivals.
  std::vector<Thread *> waiters;
};

/// A thread of a block that runs. Compiled code sees the base.
struct Thread : KVCacheThread {
  Block *block = nullptr;
  /// In the cluster: block by block, x innermost.
  uint32_t index = 0;
  bool hasEnded = false;
  /// The event that the thread waits for, and where; null while it can run.
  Waitable *waitsFor = nullptr;
  const KVCacheSite *waitsAt = nullptr;
  /// Whether the thread only polls, and whether it found nothing.
  bool polls = false, pollsInVain = false;
  Fiber *fiber = nullptr;
  CopyQueue copies;
  /// The last text that the thread printed.
  std::string printed;
  Variables variables;
  /// The bytes that `poison` points to, if any are poisoned.
  char poisonedBytes[KVCachePoisonBytes];

  /// The uninitialized bytes of a read, for compiled code.
  void setPoison(const Poison &read);

  /// The thread that compiled code runs as.
  static Thread &get(KVCacheThread *thread) {
    return *static_cast<Thread *>(thread);
  }
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_THREAD_H
