//===- Warps.h - Convergence of the threads of a warp -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_WARPS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_WARPS_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;
class WarpConvergence;

inline constexpr uint32_t kAllLanes = ~0u;

/// The operands and results of a lane at an instruction of its warp: a base
/// class.
struct WarpLane {
  Thread *thread = nullptr;
  bool isDone = false;
};

/// The work of a warp instruction. The last lane that arrives executes it for
/// all.
using WarpWork = void (*)(Block &block, WarpConvergence &convergence);

/// Which lanes may execute an instruction together.
enum class WarpRule : uint8_t {
  /// The lanes at the same instruction of the source.
  SameSite,
  /// The lanes at such an instruction anywhere (bar.warp.sync).
  AnySite,
  /// All 32 lanes, at the same instruction (.aligned).
  AllLanes
};

/// The instructions that several lanes of a warp execute together.
class Warps {
public:
  explicit Warps(Block &block);
  ~Warps();

  void begin();
  /// A thread has ended: those that wait for it go on.
  void noteExit(Thread &thread);

  /// The lanes of a warp, and those that have not ended.
  uint32_t getLanes(uint32_t warp) const;
  uint32_t getLive(uint32_t warp) const { return warps[warp].live; }
  /// The warps in which any lane has not ended.
  uint32_t numLive() const { return liveWarps; }

  /// For an instruction that a warp executes.
  std::vector<char> &getScratch() { return scratch; }

  /// Waits for all lanes of `mask` that have not ended; the last one runs
  /// `work`. `lane` has to be of the subclass of WarpLane that `work`
  /// uses.
  void converge(Thread &thread, const KVCacheSite *site, uint32_t mask,
                WarpWork work, WarpLane &lane,
                WarpRule rule = WarpRule::SameSite);

  /// "lane 3", "lanes 0 to 7 and 9"; "0x0000000f".
  static std::string describeLanes(uint32_t lanes);
  static std::string describeMask(uint32_t mask);

private:
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  struct Warp {
    uint32_t live = 0;
    /// `KVCacheThread::registers`.
    std::unique_ptr<char, Free> registers;
    size_t registerBytes = 0;
    /// The instructions that some lanes have not reached.
    std::vector<WarpConvergence *> open;
  };

  WarpConvergence *find(Thread &thread, const KVCacheSite *site, uint32_t mask,
                        WarpWork work, WarpRule rule);
  WarpConvergence &open(uint32_t warp, const KVCacheSite *site, uint32_t mask,
                        WarpWork work, WarpRule rule);
  bool isComplete(const WarpConvergence &convergence) const;
  void complete(WarpConvergence &convergence);
  [[noreturn]] void failToConverge(const Thread &thread,
                                   const KVCacheSite *site, uint32_t mask,
                                   const WarpConvergence &other) const;

  void reserveRegisters(uint32_t number);

  Block &block;
  std::vector<Warp> warps;
  std::vector<char> scratch;
  uint32_t liveWarps = 0;
  /// All, and those that are not open.
  std::vector<std::unique_ptr<WarpConvergence>> convergences;
  std::vector<WarpConvergence *> unused;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_WARPS_H
