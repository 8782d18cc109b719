//===- Synchronization.h - mbarriers and fences -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions". An
// mbarrier's state is kept beside the 8 bytes of shared memory that stand for
// it.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_SYNCHRONIZATION_H
#define KVCACHE_EMULATOR_SYNCHRONIZATION_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

/// `barrier` completes a phase after `count` arrivals.
void kvcacheEmulatorMBarrierInit(KVCacheThread *thread, const KVCacheSite *site,
                                 const void *barrier, int32_t count);
void kvcacheEmulatorMBarrierInval(KVCacheThread *thread,
                                  const KVCacheSite *site, const void *barrier);

/// How to arrive, and how to wait.
enum {
  /// All later phases have as many arrivals less.
  KVCacheMBarrierDrop = 1,
  /// This arrival doesn't complete the phase, which is an error if it does.
  KVCacheMBarrierNoComplete = 2,
  /// Orders no accesses.
  KVCacheMBarrierRelaxed = 4,
  /// Orders those of all threads of the cluster, not only of the block.
  KVCacheMBarrierCluster = 8
};

/// Expects `bytes` more in this phase, then arrives `count` times. Returns the
/// state to wait with: the phase and the barrier.
int64_t kvcacheEmulatorMBarrierArrive(KVCacheThread *thread,
                                      const KVCacheSite *site,
                                      const void *barrier, int32_t count,
                                      int32_t bytes, uint32_t flags);

/// Expects `bytes` more in this phase; notes that `bytes` have arrived.
void kvcacheEmulatorMBarrierExpectTx(KVCacheThread *thread,
                                     const KVCacheSite *site,
                                     const void *barrier, int32_t bytes);
void kvcacheEmulatorMBarrierCompleteTx(KVCacheThread *thread,
                                       const KVCacheSite *site,
                                       const void *barrier, int32_t bytes);

/// Whether the phase of a state has completed, or the phase of a parity: of the
/// barrier's phase and the one before, the one with this parity. Returns when
/// it has, or earlier: in sanitized modules at times at once.
int32_t kvcacheEmulatorMBarrierTestState(KVCacheThread *thread,
                                         const KVCacheSite *site,
                                         const void *barrier, int64_t state,
                                         uint32_t flags);
int32_t kvcacheEmulatorMBarrierTestParity(KVCacheThread *thread,
                                          const KVCacheSite *site,
                                          const void *barrier, int32_t parity,
                                          uint32_t flags);

/// Waits until the phase of a parity has completed.
void kvcacheEmulatorMBarrierWaitParity(KVCacheThread *thread,
                                       const KVCacheSite *site,
                                       const void *barrier, int32_t parity);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Waits until the launches before have ended (griddepcontrol.wait).
void kvcacheEmulatorWaitForLaunches(KVCacheThread *thread,
                                    const KVCacheSite *site);
/// Lets later launches begin, when all blocks have done so or ended
/// (griddepcontrol.launch_dependents).
void kvcacheEmulatorStartDependents(KVCacheThread *thread,
                                    const KVCacheSite *site);

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

enum {
  /// A fence for accesses by threads.
  KVCacheFenceMemory = 0,
  /// A fence that makes initialized mbarriers visible to copies.
  KVCacheFenceMBarrierInit = 1,
  /// Between accesses by threads and by copies: of all memory, of shared memory
  /// and of global memory only.
  KVCacheFenceAsync = 2,
  KVCacheFenceAsyncShared = 3,
  KVCacheFenceAsyncGlobal = 4
};

void kvcacheEmulatorFence(KVCacheThread *thread, const KVCacheSite *site,
                          uint32_t kind);

/// Orders accesses around atomic ones, with the flags of
/// `kvcacheEmulatorAccess` that say how.
void kvcacheEmulatorFenceMemory(KVCacheThread *thread, const KVCacheSite *site,
                                uint32_t flags);

/// Makes a tensor map that a thread has written, `bytes` at `tensorMap`,
/// visible to later copies.
void kvcacheEmulatorFenceTensorMap(KVCacheThread *thread,
                                   const KVCacheSite *site,
                                   const void *tensorMap, int32_t bytes);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_SYNCHRONIZATION_H
