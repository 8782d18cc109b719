//===- Warpgroups.h - Matrix instructions of a warpgroup --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"). The 128
// threads of four warps execute wgmma.mma_async together. The matrices are read
// when it is issued, and count as being read by the asynchronous proxy until a
// wait for its group: what writes them before that is an error, so no right
// kernel sees the difference.
//
// Its result is in registers that are in flight until then. Each instruction
// gets a ticket, from 1. Where the module is sanitized, compiled code has the
// ticket of each value that is in such registers, and announces where another
// instruction reads the value.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_WARPGROUPS_H
#define KVCACHE_EMULATOR_WARPGROUPS_H

#include "kvcache/Emulator/Matrices.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// D = A B + D, where A is 64 by k, and B k by n.
typedef struct KVCacheWgmma {
  uint32_t n, k;
  /// The elements of A, B and D (KVCacheElement…).
  uint32_t a, b, d;
  /// Whether A has M as its major dimension, and B N, rather than K.
  uint32_t isMNMajorA, isMNMajorB;
  /// Whether A and B are negated.
  uint32_t negatesA, negatesB;
  /// Whether D is added, or else only written.
  uint32_t accumulates;
  uint32_t isSaturated;
  /// Whether A is in registers, K-major, and has no descriptor.
  uint32_t hasRegistersA;
} KVCacheWgmma;

/// The accumulators of a thread, before the instruction and after it.
typedef struct KVCacheWgmmaRegisters {
  uint32_t d[128];
  /// Where the module is sanitized: the poisoned bits (Poison.h), their origin
  /// or 0; the ticket of the instruction whose accumulators `d` has, or 0; and
  /// how many fences the thread must have executed since it began, because of
  /// other instructions that wrote `d`.
  uint32_t poison[128];
  uint32_t origin, ticket, numFences;
  /// The registers of A, if the instruction has them, and the same of them.
  uint32_t a[4];
  uint32_t poisonA[4];
  uint32_t originA, ticketA, numFencesA;
} KVCacheWgmmaRegisters;

/// wgmma.mma_async. Products of floats are exact. Their sum, with that of D,
/// drops low bits as an H200 does (emulator/docs/differences-from-a-chip.md).
void kvcacheEmulatorWgmma(KVCacheThread *thread, const KVCacheSite *site,
                          const KVCacheWgmma *form, int64_t a, int64_t b,
                          KVCacheWgmmaRegisters *registers);

/// wgmma.fence, wgmma.commit_group, wgmma.wait_group.
void kvcacheEmulatorWgmmaFence(KVCacheThread *thread, const KVCacheSite *site);
void kvcacheEmulatorWgmmaCommit(KVCacheThread *thread, const KVCacheSite *site);
void kvcacheEmulatorWgmmaWait(KVCacheThread *thread, const KVCacheSite *site,
                              int64_t count);

/// The thread reads the accumulators of the instruction with that ticket; none
/// for 0.
void kvcacheEmulatorUseAccumulators(KVCacheThread *thread,
                                    const KVCacheSite *site, uint32_t ticket);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_WARPGROUPS_H
