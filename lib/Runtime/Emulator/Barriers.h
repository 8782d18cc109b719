//===- Barriers.h - Barriers of a block -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_RUNTIME_EMULATOR_BARRIERS_H
#define KVCACHE_LIB_RUNTIME_EMULATOR_BARRIERS_H

#include <cstdint>

namespace mlir::kvcache::emulator {

class Block;
struct Thread;

/// The 16 numbered barriers of a block: bar.sync and bar.arrive.
class Barriers {
public:
  explicit Barriers(Block &block) : block(block) {}

  void begin();
  /// A thread has ended: barriers for all threads don't count it any more.
  void noteExit(Thread &thread);

private:
  Block &block;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_RUNTIME_EMULATOR_BARRIERS_H
