//===- Grid.h - What blocks have in common --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_GRID_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_GRID_H

#include "SharedVariables.h"

#include <cstdint>
#include <string>

namespace mlir::kvcache::emulator {

class LaunchMeter;
class LaunchShadow;

/// What all blocks of a launch have in common.
struct Grid {
  const KVCacheEmulatedModule *module = nullptr;
  const KVCacheEmulatedKernel *kernel = nullptr;
  /// `@module::@kernel`.
  std::string name;
  /// The addresses of the parameters.
  void **params = nullptr;
  uint32_t blocks[3] = {}, threads[3] = {};
  /// Bytes of a block, and those of them that are dynamic.
  uint32_t sharedBytes = 0, dynamicSharedBytes = 0;
  SharedVariables sharedVariables;
  /// Makes the order of what has none: 0 for that of the numbers of threads.
  uint64_t seed = 0;
  /// The seconds of a processor that a block may take, if it comes to a place
  /// again and again.
  uint64_t mostSeconds = 300;
  /// The threads of the host that run blocks.
  uint64_t numWorkers = 1;
  /// The chip that is emulated.
  std::string chip;
  /// Where blocks of metered modules count.
  LaunchMeter *meter = nullptr;
  /// What blocks of sanitized modules know of each other; null otherwise.
  LaunchShadow *shadow = nullptr;
  /// Whether the launch before may still run when blocks begin
  /// (`kvcache.programmatic`), and whether it does.
  bool isProgrammatic = false, isAhead = false;
  /// Whether the last block stops where it lets later launches begin, if it
  /// comes there.
  bool stopsForDependents = false;

  uint64_t numBlocks() const {
    return uint64_t{blocks[0]} * blocks[1] * blocks[2];
  }
  uint32_t numThreads() const { return threads[0] * threads[1] * threads[2]; }
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_GRID_H
