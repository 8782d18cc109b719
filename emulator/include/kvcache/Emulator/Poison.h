//===- Poison.h - Uninitialized values --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only sanitized modules call these functions. A load of uninitialized bytes
// gives a poisoned value, and operations on it give poisoned results.
// The compiled code has the poisoned bits of each value, and a number for their
// origin, which is not 0. The functions end the launch where a poisoned value
// is used.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_POISON_H
#define KVCACHE_EMULATOR_POISON_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// The use of a value.
enum {
  KVCacheUseBranch = 0,
  KVCacheUseAddress = 1,
  KVCacheUseOperand = 2,
  KVCacheUseCall = 3
};

/// Uses a value whose poison comes from `origin`, or one that is not poisoned,
/// with 0.
void kvcacheEmulatorUse(KVCacheThread *thread, const KVCacheSite *site,
                        uint32_t origin, uint32_t use);

/// The thread reads `bytes` at `offset` of a variable of its own of `size`
/// bytes, for each of which `unwritten` has a byte that is not 0 if it
/// is uninitialized. Returns the origin of those, or 0 if there are none.
uint32_t kvcacheEmulatorReadUnwritten(KVCacheThread *thread,
                                      const KVCacheSite *site,
                                      const void *unwritten, int64_t bytes,
                                      int64_t offset, int64_t size);

/// The thread has announced a store of `bytes` at `pointer`. Unless `origin` is
/// 0, those are poisoned for which `poison` has a byte that is not 0: in shared
/// memory they stay uninitialized, elsewhere this is a use.
void kvcacheEmulatorStorePoison(KVCacheThread *thread, const KVCacheSite *site,
                                const void *pointer, int64_t bytes,
                                const void *poison, uint32_t origin);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_POISON_H
