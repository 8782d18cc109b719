//===- Launches.cpp - Checks and names of launches ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Runtime/Support.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

std::string runtime::getKernelName(const std::string &module,
                                   const char *kernel) {
  return "@" + module + "::@" + kernel;
}

bool runtime::isEmulated(const KVCacheImage &image) {
  return std::strncmp(image.chip, kEmulatedPrefix,
                      sizeof(kEmulatedPrefix) - 1) == 0;
}

std::string runtime::listChips(const KVCacheBinary &binary) {
  std::string chips;
  for (int64_t i = 0; i < binary.numImages; ++i) {
    if (i > 0)
      chips += ", ";
    chips += binary.images[i].chip;
  }
  return chips.empty() ? "no chip" : chips;
}

static int32_t checkSides(const std::string &kernel, const char *what,
                          const int64_t (&sides)[3], int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (int64_t side : sides)
    if (side < least || side > most)
      return fail("expects the " + std::string(what) + " of kernel " + kernel +
                  " to have sides from " + std::to_string(least) +
                  " to 2^31 - 1, got " + std::to_string(side));
  return kSuccess;
}

static int32_t checkCluster(const std::string &kernel,
                            const KVCacheLaunch &launch) {
  const int64_t (&cluster)[3] = launch.cluster;
  if (cluster[0] == 0 && cluster[1] == 0 && cluster[2] == 0)
    return kSuccess;
  if (int32_t status = checkSides(kernel, "cluster", cluster, 1))
    return status;
  int64_t blocks = 1;
  for (int64_t side : cluster)
    blocks = std::min(blocks * side, kMaxClusterBlocks + 1);
  if (blocks > kMaxClusterBlocks)
    return fail("expects the cluster of kernel " + kernel +
                " to have at most " + std::to_string(kMaxClusterBlocks) +
                " blocks, got " + std::to_string(cluster[0]) + " x " +
                std::to_string(cluster[1]) + " x " +
                std::to_string(cluster[2]));
  for (int side = 0; side < 3; ++side)
    if (launch.grid[side] % cluster[side] != 0)
      return fail("expects the cluster of kernel " + kernel +
                  " to divide the grid, got " + std::to_string(cluster[side]) +
                  " of " + std::to_string(launch.grid[side]) +
                  " blocks along " + "xyz"[side]);
  return kSuccess;
}

int32_t runtime::checkLaunch(const std::string &kernel,
                             const KVCacheLaunch &launch) {
  if (int32_t status = checkSides(kernel, "grid", launch.grid, 0))
    return status;
  if (int32_t status = checkSides(kernel, "block", launch.block, 1))
    return status;
  if (int32_t status = checkCluster(kernel, launch))
    return status;
  if (launch.sharedBytes < 0 ||
      launch.sharedBytes > std::numeric_limits<int32_t>::max())
    return fail("expects the shared memory of kernel " + kernel +
                " to have from 0 to 2^31 - 1 bytes, got " +
                std::to_string(launch.sharedBytes));
  return kSuccess;
}

bool runtime::isEmpty(const KVCacheLaunch &launch) {
  return launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0;
}
