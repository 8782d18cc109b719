//===- Control.h - Printing, assertions and traps, emulated -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_CONTROL_H
#define KVCACHE_EMULATOR_CONTROL_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Prints to the standard output, all at once (CUDA C++ Programming Guide,
/// "Formatted Output"). `arguments` holds them one after the other, each
/// aligned to its size: 4 bytes for an int, 8 for a double. Returns how many
/// were printed.
int32_t kvcacheEmulatorPrint(KVCacheThread *thread, const KVCacheSite *site,
                             const char *format, const void *arguments);

/// An assertion does not hold: ends the launch.
void kvcacheEmulatorAssertFail(KVCacheThread *thread, const KVCacheSite *site,
                               const char *message, const char *file,
                               uint32_t line, const char *function);

/// Ends the launch.
void kvcacheEmulatorTrap(KVCacheThread *thread, const KVCacheSite *site);

/// State spaces (PTX ISA, "isspacep"). The shared memory of a block is in that
/// of its cluster.
enum {
  KVCacheSpaceGlobal = 0,
  KVCacheSpaceShared = 1,
  KVCacheSpaceSharedCluster = 2,
  KVCacheSpaceLocal = 3
};

/// Whether a generic pointer is into a space: 1 or 0.
uint32_t kvcacheEmulatorIsInSpace(KVCacheThread *thread,
                                  const KVCacheSite *site, const void *pointer,
                                  uint32_t space);

/// Errors that end the launch, because an operation has no defined result.
enum {
  KVCacheDividesByZero = 0,
  /// The least number by -1.
  KVCacheDivisionOverflows = 1,
  /// Code that the compiler assumed to be unreachable.
  KVCacheReachesUnreachable = 2
};

/// Ends the launch for such a reason.
void kvcacheEmulatorFail(KVCacheThread *thread, const KVCacheSite *site,
                         uint32_t reason);

/// Goes back in a loop. Ends the launch if it is interrupted (SIGINT), or if
/// the block has run for too long (KVCACHE_EMULATOR_TIMEOUT).
void kvcacheEmulatorLoop(KVCacheThread *thread, const KVCacheSite *site);
/// Counts many rounds of a loop. Where nothing is checked or counted, compiled
/// code counts them itself, in `numLoops` of the thread.
void kvcacheEmulatorManyLoops(KVCacheThread *thread, const KVCacheSite *site);
enum { KVCacheManyLoops = 1 << 16 };

/// Ends the thread.
void kvcacheEmulatorExit(KVCacheThread *thread, const KVCacheSite *site);

/// Lets other threads run for about so many nanoseconds, at most 10^6.
void kvcacheEmulatorSleep(KVCacheThread *thread, const KVCacheSite *site,
                          uint32_t nanoseconds);

/// Nanoseconds, for %clock and %globaltimer: no value is less than an earlier
/// one.
uint64_t kvcacheEmulatorClock(KVCacheThread *thread, const KVCacheSite *site);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_CONTROL_H
