//===- Warps.h - What the lanes of a warp do together -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions that wait for all lanes of `mask` that have not ended (PTX ISA,
// "Parallel Synchronization and Communication Instructions", and shfl.sync).
// Only bar.warp.sync orders memory.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_WARPS_H
#define KVCACHE_EMULATOR_WARPS_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// bar.warp.sync.
void kvcacheEmulatorSyncWarp(KVCacheThread *thread, const KVCacheSite *site,
                             uint32_t mask);

enum {
  KVCacheShuffleBfly = 0,
  KVCacheShuffleUp = 1,
  KVCacheShuffleDown = 2,
  KVCacheShuffleIdx = 3
};

/// shfl.sync: the `value` of another lane, or of this one where the other is
/// out of its segment, which `isInRange` returns if it isn't null. `clamp` has
/// the mask of segments in bits 8 to 12.
uint32_t kvcacheEmulatorShuffle(KVCacheThread *thread, const KVCacheSite *site,
                                uint32_t mask, uint32_t value, uint32_t offset,
                                uint32_t clamp, uint32_t kind,
                                uint32_t *isInRange);

enum {
  KVCacheVoteAny = 0,
  KVCacheVoteAll = 1,
  KVCacheVoteBallot = 2,
  KVCacheVoteUni = 3
};

/// vote.sync: 0 or 1, or the lanes whose predicate is not 0 (ballot).
uint32_t kvcacheEmulatorVote(KVCacheThread *thread, const KVCacheSite *site,
                             uint32_t mask, uint32_t predicate, uint32_t kind);

/// match.any.sync: the lanes that have the same value.
uint32_t kvcacheEmulatorMatchAny(KVCacheThread *thread, const KVCacheSite *site,
                                 uint32_t mask, uint64_t value);
/// match.all.sync: all lanes if they have the same value, or else 0.
uint32_t kvcacheEmulatorMatchAll(KVCacheThread *thread, const KVCacheSite *site,
                                 uint32_t mask, uint64_t value);

enum {
  KVCacheReduceAdd = 0,
  KVCacheReduceAnd = 1,
  KVCacheReduceOr = 2,
  KVCacheReduceXor = 3,
  KVCacheReduceMin = 4,
  KVCacheReduceMax = 5,
  KVCacheReduceUMin = 6,
  KVCacheReduceUMax = 7
};

/// redux.sync on integers.
uint32_t kvcacheEmulatorReduce(KVCacheThread *thread, const KVCacheSite *site,
                               uint32_t mask, uint32_t value, uint32_t kind);

/// redux.sync on floats: the least or the greatest, of the magnitudes if
/// `isAbs`. NaNs are left out, or are the result if `keepsNaN`.
float kvcacheEmulatorReduceF32(KVCacheThread *thread, const KVCacheSite *site,
                               uint32_t mask, float value, uint32_t isMax,
                               uint32_t isAbs, uint32_t keepsNaN);

/// elect.sync: 1 in one lane of the mask, 0 in others. No code may count on
/// which: it is the highest in sanitized modules, the lowest in others.
uint32_t kvcacheEmulatorElect(KVCacheThread *thread, const KVCacheSite *site,
                              uint32_t mask);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_WARPS_H
