//===- Barriers.h - Barriers of a block -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The 16 numbered barriers of a block (PTX ISA, "Parallel Synchronization and
// Communication Instructions": bar, barrier).
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_BARRIERS_H
#define KVCACHE_EMULATOR_BARRIERS_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// The reduction of the predicates of a barrier's threads.
enum {
  KVCacheBarrierNone = 0,
  /// The number of those that are true.
  KVCacheBarrierPopc = 1,
  KVCacheBarrierAnd = 2,
  KVCacheBarrierOr = 3
};

/// bar.sync and bar.red: waits until `numThreads` threads, a multiple of 32,
/// have arrived at barrier `id`; with -1, all that have not ended. Returns what
/// `reduction` makes of the predicates, 0 for none.
uint32_t kvcacheEmulatorBarrier(KVCacheThread *thread, const KVCacheSite *site,
                                uint32_t id, int64_t numThreads,
                                uint32_t reduction, uint32_t predicate);

/// bar.arrive: one of `numThreads` threads that arrive at barrier `id`, without
/// waiting for those of other warps.
void kvcacheEmulatorBarrierArrive(KVCacheThread *thread,
                                  const KVCacheSite *site, uint32_t id,
                                  uint32_t numThreads);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_BARRIERS_H
