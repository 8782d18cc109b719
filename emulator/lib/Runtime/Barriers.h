//===- Barriers.h - Barriers of a block -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_BARRIERS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_BARRIERS_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The operands and results of a thread at a barrier that it waits for.
struct BarrierThread {
  Thread *thread = nullptr;
  const KVCacheSite *site = nullptr;
  uint32_t id = 0;
  /// The threads that the barrier is for; -1 for all of the block that have
  /// not ended.
  int64_t numThreads = -1;
  uint32_t reduction = 0;
  bool predicate = false;
  uint32_t result = 0;
  bool isDone = false;
};

/// The 16 numbered barriers of a block: bar.sync, bar.red and bar.arrive. Whole
/// warps arrive at them, when their last thread does (PTX ISA, "bar").
class Barriers {
public:
  explicit Barriers(Block &block);
  ~Barriers();

  void begin();
  /// A thread has ended: barriers for all threads don't count it any more.
  /// After `Warps::noteExit`.
  void noteExit(Thread &thread);

  /// Waits until the barrier completes.
  void synchronize(BarrierThread &arrival);
  /// All live threads of a warp have executed bar.arrive, like `arrival`.
  void arrive(const BarrierThread &arrival,
              const std::vector<Thread *> &threads);

private:
  struct Barrier;

  Barrier &open(const BarrierThread &arrival);
  void checkOperands(const BarrierThread &arrival) const;
  void checkPhase(const Barrier &barrier, const BarrierThread &arrival) const;
  void checkWarp(const BarrierThread &one) const;
  void noteWarp(Barrier &barrier, uint32_t warp);
  bool isComplete(const Barrier &barrier) const;
  void complete(Barrier &barrier);
  uint32_t numWarps() const;

  Block &block;
  std::unique_ptr<Barrier[]> barriers;
  /// The barriers that any thread has reached.
  uint32_t numOpen = 0;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_BARRIERS_H
