//===- Registers.h - The registers of a block -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_REGISTERS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_REGISTERS_H

#include "kvcache/Emulator/ABI.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;
class WarpConvergence;

/// The registers that the warps of a block have, and those that they have given
/// back. PTX ISA, "setmaxnreg". Nothing is counted before the first of these.
class Registers {
public:
  explicit Registers(Block &block);
  ~Registers();

  void begin();
  /// The end of the block: warpgroups have executed all of them together.
  void end() const;

  /// All lanes of a warp have converged. Gives registers back at once.
  void change(WarpConvergence &convergence);
  /// Waits for those that the warp of the thread has yet to get.
  void wait(Thread &thread, const KVCacheSite *site);

private:
  struct Change;
  struct Warp;

  void prepare(const Thread &thread, const KVCacheSite *site);
  void checkWarpgroup(const Thread &thread, const Change &change) const;
  bool isKnown(uint32_t warp, uint32_t other, const Change &change) const;

  Block &block;
  std::vector<std::unique_ptr<Warp>> warps;
  /// The free registers of one lane's threads: a warp allocates and frees 32 of
  /// each.
  uint32_t numFree = 0;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_REGISTERS_H
