//===- AsyncCopies.h - cp.async, tensor and bulk copies ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy". In a
// module that is sanitized a copy happens when it must have happened at the
// latest, otherwise at once.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_ASYNCCOPIES_H
#define KVCACHE_EMULATOR_ASYNCCOPIES_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

//===----------------------------------------------------------------------===//
// Copies by threads (cp.async)
//===----------------------------------------------------------------------===//

/// Copies 4, 8 or 16 bytes to shared memory: `sourceBytes` of global memory,
/// and zeros after them.
void kvcacheEmulatorCopyAsync(KVCacheThread *thread, const KVCacheSite *site,
                              void *to, const void *from, int32_t bytes,
                              int32_t sourceBytes);

/// Makes a group of the thread's copies that are in none.
void kvcacheEmulatorCopyAsyncCommit(KVCacheThread *thread,
                                    const KVCacheSite *site);
/// Waits for all groups of the thread but the last `count`.
void kvcacheEmulatorCopyAsyncWait(KVCacheThread *thread,
                                  const KVCacheSite *site, int32_t count);
/// The thread arrives at an mbarrier when all its copies so far are done.
/// Unless `isCounted`, that arrival comes on top of those that the phase waits
/// for.
void kvcacheEmulatorCopyAsyncArrive(KVCacheThread *thread,
                                    const KVCacheSite *site,
                                    const void *barrier, int32_t isCounted);

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

/// Which of a tensor a copy moves.
enum {
  /// The box at the coordinates.
  KVCacheTensorTile = 0,
  /// Four rows of a tensor of two dimensions; the coordinates are a column and
  /// the rows.
  KVCacheTensorRows = 1
};

/// Copies from global to shared memory of a block of the cluster, and counts
/// the bytes of the box on an mbarrier of that; with a `mask` that is not
/// negative, to and on those at the same places in each block whose rank is in
/// it. If `isOfPair`, the mbarrier may be in the other block of the pair.
/// Coordinates after the first `numCoordinates` have no meaning.
void kvcacheEmulatorTensorLoad(KVCacheThread *thread, const KVCacheSite *site,
                               void *to, const void *descriptor,
                               const void *barrier, int32_t mask,
                               uint32_t isOfPair, uint32_t mode,
                               int32_t numCoordinates, int32_t c0, int32_t c1,
                               int32_t c2, int32_t c3, int32_t c4);
/// Copies from shared to global memory.
void kvcacheEmulatorTensorStore(KVCacheThread *thread, const KVCacheSite *site,
                                const void *descriptor, const void *from,
                                uint32_t mode, int32_t numCoordinates,
                                int32_t c0, int32_t c1, int32_t c2, int32_t c3,
                                int32_t c4);
void kvcacheEmulatorTensorPrefetch(KVCacheThread *thread,
                                   const KVCacheSite *site,
                                   const void *descriptor, uint32_t mode,
                                   int32_t numCoordinates, int32_t c0,
                                   int32_t c1, int32_t c2, int32_t c3,
                                   int32_t c4);
/// prefetch.tensormap
void kvcacheEmulatorPrefetchTensorMap(KVCacheThread *thread,
                                      const KVCacheSite *site,
                                      const void *descriptor);

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

/// Copies from global to shared memory, and counts the bytes on an mbarrier,
/// with a mask like that of `kvcacheEmulatorTensorLoad`.
void kvcacheEmulatorBulkLoad(KVCacheThread *thread, const KVCacheSite *site,
                             void *to, const void *from, const void *barrier,
                             int32_t bytes, int32_t mask);
/// Copies from shared memory of the block to that of a block of the cluster,
/// and counts the bytes on an mbarrier of that.
void kvcacheEmulatorBulkCopyShared(KVCacheThread *thread,
                                   const KVCacheSite *site, void *to,
                                   const void *from, const void *barrier,
                                   int32_t bytes);
/// Copies from shared to global memory, of each 16 bytes those whose bits in
/// `byteMask` are set.
void kvcacheEmulatorBulkStore(KVCacheThread *thread, const KVCacheSite *site,
                              void *to, const void *from, int32_t bytes,
                              uint32_t byteMask);
void kvcacheEmulatorBulkPrefetch(KVCacheThread *thread, const KVCacheSite *site,
                                 const void *from, int32_t bytes);

/// Makes a group of the thread's copies to global memory that are in none.
void kvcacheEmulatorBulkCommit(KVCacheThread *thread, const KVCacheSite *site);
/// Waits for all groups of the thread but the last `count`; with `isRead` only
/// until they have read shared memory.
void kvcacheEmulatorBulkWait(KVCacheThread *thread, const KVCacheSite *site,
                             int32_t count, int32_t isRead);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_ASYNCCOPIES_H
