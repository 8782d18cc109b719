//===- Clusters.h - The blocks of a cluster, emulated -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "barrier.cluster", "mapa" and "getctarank". A launch without
// clusters has clusters of one block.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_CLUSTERS_H
#define KVCACHE_EMULATOR_CLUSTERS_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum {
  /// All threads of the warp execute the instruction together.
  KVCacheClusterAligned = 1,
  /// An arrival that orders no accesses, except those after a fence.
  KVCacheClusterRelaxed = 2
};

/// The thread arrives at the barrier of the cluster, once in each phase.
void kvcacheEmulatorClusterArrive(KVCacheThread *thread,
                                  const KVCacheSite *site, uint32_t flags);
/// Waits until all threads of the cluster have arrived that have not ended.
void kvcacheEmulatorClusterWait(KVCacheThread *thread, const KVCacheSite *site,
                                uint32_t flags);

/// The address in shared memory of the block with a rank that corresponds to
/// one in shared memory of the cluster.
void *kvcacheEmulatorMapShared(KVCacheThread *thread, const KVCacheSite *site,
                               const void *pointer, int32_t rank);
/// The rank of the block whose shared memory has the address.
int32_t kvcacheEmulatorGetRank(KVCacheThread *thread, const KVCacheSite *site,
                               const void *pointer);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_CLUSTERS_H
