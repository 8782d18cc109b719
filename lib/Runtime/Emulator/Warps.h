//===- Warps.h - Threads of a warp that meet --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_WARPS_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_WARPS_H

#include <cstdint>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The instructions that several lanes of a warp execute together.
class Warps {
public:
  explicit Warps(Block &block) : block(block) {}

  void begin();
  /// A thread has ended: others may wait for it in vain.
  void noteExit(Thread &thread);

private:
  Block &block;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_WARPS_H
