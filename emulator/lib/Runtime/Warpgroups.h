//===- Warpgroups.h - The state of wgmma in a block -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_WARPGROUPS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_WARPGROUPS_H

#include "Sanitizer.h"
#include "kvcache/Emulator/Warpgroups.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The operands and results of a thread at wgmma.mma_async.
struct WgmmaThread {
  Thread *thread = nullptr;
  uint64_t a = 0, b = 0;
  KVCacheWgmmaRegisters *registers = nullptr;
  bool isDone = false;
};

/// The four warps from a multiple of 4 on, and what their wgmma have in flight.
/// All lanes of a warp have executed the same of these instructions, so that
/// each warp has one state.
class Warpgroups {
public:
  static constexpr uint32_t kNumWarps = 4, kNumThreads = 128;

  /// An instruction of a warp.
  struct Issued {
    const KVCacheSite *site;
    const KVCacheWgmma *form;
    /// The bytes that it reads: rows of A, and B.
    Sanitizer::Copy reads;
    /// How many fences must have been executed before its accumulators may be
    /// those of another wgmma, because of what has read them.
    uint32_t numFences = 0;
    /// The wgmma that has taken over its accumulators in flight, or null.
    const KVCacheSite *takenBy = nullptr;
  };

  /// The state of a warp.
  struct Warp {
    uint32_t numFences = 0, numCommits = 0, numWaits = 0;
    /// By ticket, from 1; those up to `numDone` are not in flight any more.
    std::vector<Issued> issued;
    uint32_t numDone = 0, numCommitted = 0;
    /// The last ticket of each group that has not been waited for.
    std::deque<uint32_t> groups;
    /// The ends of its reads.
    ReleaseClock clocks;

    const Issued &get(uint32_t ticket) const { return issued[ticket - 1]; }
    Issued &get(uint32_t ticket) { return issued[ticket - 1]; }
  };

  explicit Warpgroups(Block &block);
  ~Warpgroups();

  void begin();
  /// The end of the block: nothing may be in flight.
  void end() const;
  /// A thread has ended: an error if others of its warpgroup wait for it.
  void noteExit(const Thread &thread) const;

  /// Fails if the block does not have all threads of the thread's warpgroup.
  void checkSize(const Thread &thread, const KVCacheSite *site) const;
  Warp &getWarp(const Thread &thread);
  /// Waits for all threads of the warpgroup, the last of which
  /// executes the instruction.
  void multiply(WgmmaThread &one, const KVCacheSite *site,
                const KVCacheWgmma &form);
  void use(const Thread &thread, const KVCacheSite *site, uint32_t ticket);

private:
  struct Convergence;

  void checkThreads(const Thread &thread, const KVCacheSite *site) const;
  void checkWarps(const Convergence &convergence) const;
  void checkAccumulators(const WgmmaThread &one, const KVCacheSite *site,
                         const KVCacheWgmma &form);

  Block &block;
  std::vector<Warp> warps;
  /// By warpgroup.
  std::vector<std::unique_ptr<Convergence>> convergences;
};

/// Executes an instruction whose threads have arrived: checks its matrices,
/// reads them and computes `d`. Gives the reads of each warp.
void multiply(Block &block, const KVCacheSite *site, const KVCacheWgmma &form,
              const std::vector<WgmmaThread *> &threads,
              Sanitizer::Copy (&reads)[Warpgroups::kNumWarps]);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_WARPGROUPS_H
