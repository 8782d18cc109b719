//===- Grid.h - What blocks have in common ----------------------*- C++ -*-===//
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

/// The properties that all blocks of a launch share.
struct Grid {
  const KVCacheEmulatedModule *module = nullptr;
  const KVCacheEmulatedKernel *kernel = nullptr;
  /// `@module::@kernel`.
  std::string name;
  /// The addresses of the parameters.
  void **params = nullptr;
  uint32_t blocks[3] = {}, threads[3] = {};
  /// The blocks of a cluster, which divide those of the grid.
  uint32_t cluster[3] = {1, 1, 1};
  /// Bytes of a block, and those of them that are dynamic.
  uint32_t sharedBytes = 0, dynamicSharedBytes = 0;
  SharedVariables sharedVariables;
  /// Makes the order of what has none: 0 for that of the numbers of threads.
  uint64_t seed = 0;
  /// The seconds of a processor that a block with loops
  /// may use.
  uint64_t mostSeconds = 300;
  /// The threads of the host that run blocks.
  uint64_t numWorkers = 1;
  /// The clusters of sanitized modules that run in turns; 1 for each to its
  /// end.
  uint64_t numTogether = 1;
  /// The chip that is emulated.
  std::string chip;
  /// Where blocks of metered modules count.
  LaunchMeter *meter = nullptr;
  /// The order between blocks of sanitized modules; null otherwise.
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
  /// The threads of a block, and the blocks of a cluster.
  uint32_t numThreads() const { return threads[0] * threads[1] * threads[2]; }
  uint32_t numClusterBlocks() const {
    return cluster[0] * cluster[1] * cluster[2];
  }
  uint64_t numClusters() const { return numBlocks() / numClusterBlocks(); }

  /// The place in the grid of the block with a rank in the cluster of a number,
  /// both counted from x to z.
  void getPlace(uint64_t number, uint32_t rank, uint32_t (&ctaid)[3]) const {
    for (int side = 0; side < 3; ++side) {
      // Divisions are slow, and most sides are 1.
      uint32_t clusterSize = cluster[side], numClusters = blocks[side];
      ctaid[side] = 0;
      if (clusterSize > 1) {
        numClusters /= clusterSize;
        ctaid[side] = rank % clusterSize;
        rank /= clusterSize;
      }
      if (numClusters > 1) {
        ctaid[side] += number % numClusters * clusterSize;
        number /= numClusters;
      }
    }
  }

  /// "block (0, 2, 0)"; "cluster (0, 1, 0)" if clusters have several blocks.
  std::string describeCluster(uint64_t number) const;
};

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_GRID_H
