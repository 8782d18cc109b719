//===- TensorMemory.h - tcgen05 ---------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "TensorCore 5th Generation Family Instructions". Tensor memory has
// 128 lanes of 512 columns of 32 bits. An address is lane << 16 | column; here
// it comes as a pointer with that value. All 32 lanes of a warp execute
// allocations, loads, stores and waits together.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_TENSORMEMORY_H
#define KVCACHE_EMULATOR_TENSORMEMORY_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

/// Allocates columns, waits until there are enough, and writes their address to
/// shared memory. If `isOfPair`, a warp of each of two blocks does that, which
/// get the same columns.
void kvcacheEmulatorTmemAlloc(KVCacheThread *thread, const KVCacheSite *site,
                              void *to, int32_t columns, uint32_t isOfPair);
void kvcacheEmulatorTmemDealloc(KVCacheThread *thread, const KVCacheSite *site,
                                const void *address, int32_t columns);
/// The block allocates nothing more.
void kvcacheEmulatorTmemRelinquish(KVCacheThread *thread,
                                   const KVCacheSite *site);

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// How the words of a load or a store lie in lanes and registers. PTX ISA,
/// "Data Movement Shape".
enum {
  KVCacheTmem16x64b = 0,
  KVCacheTmem16x128b = 1,
  KVCacheTmem16x256b = 2,
  KVCacheTmem32x32b = 3,
  KVCacheTmem16x32bx2 = 4
};

/// The registers of a lane, at most 128.
typedef struct KVCacheTmemRegisters {
  uint32_t values[128];
  /// Where the module is sanitized: the origin of poison, or 0; if it is not,
  /// the poisoned bits (Poison.h).
  uint32_t origin;
  uint32_t poison[128];
} KVCacheTmemRegisters;

/// Loads `count` registers from the address; of the shape 16x32bx2 the second
/// half of the lanes loads from `offset` columns on. If `isPacked`, a register
/// gets the low halves of two columns. Returns the number for
/// `kvcacheEmulatorTmemUse`.
uint32_t kvcacheEmulatorTmemLoad(KVCacheThread *thread, const KVCacheSite *site,
                                 const void *address, int64_t offset,
                                 uint32_t shape, uint32_t count,
                                 uint32_t isPacked,
                                 KVCacheTmemRegisters *registers);
void kvcacheEmulatorTmemStore(KVCacheThread *thread, const KVCacheSite *site,
                              const void *address, int64_t offset,
                              uint32_t shape, uint32_t count, uint32_t isPacked,
                              KVCacheTmemRegisters *registers);
/// Waits for all loads, or all stores, of the warp.
void kvcacheEmulatorTmemWait(KVCacheThread *thread, const KVCacheSite *site,
                             uint32_t isStore);
/// The thread uses what a load has returned that gave this number. Only in
/// modules that are sanitized.
void kvcacheEmulatorTmemUse(KVCacheThread *thread, const KVCacheSite *site,
                            uint32_t load);

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Orders accesses of tensor memory before (fence::before_thread_sync) or
/// after (fence::after_thread_sync) what synchronizes threads.
void kvcacheEmulatorTmemFence(KVCacheThread *thread, const KVCacheSite *site,
                              uint32_t isAfter);
/// An arrival at an mbarrier when all products, copies and shifts that the
/// thread has issued are done; with a `mask` that is not negative, at those at
/// the same place in each block of the cluster whose rank is in it.
void kvcacheEmulatorTmemCommit(KVCacheThread *thread, const KVCacheSite *site,
                               const void *barrier, int32_t mask);

//===----------------------------------------------------------------------===//
// Products, copies and shifts
//===----------------------------------------------------------------------===//

/// All of these happen in the tensor memory of the thread's block, or if
/// `isOfPair` in that of both blocks of its pair.

/// Moves 8 columns of 32 rows one row down, all rows but the last.
void kvcacheEmulatorTmemShift(KVCacheThread *thread, const KVCacheSite *site,
                              const void *address, uint32_t isOfPair);

/// The shapes of a copy, with what becomes of its rows. PTX ISA, "tcgen05.cp".
enum {
  KVCacheTmemCopy128x256b = 0,
  KVCacheTmemCopy4x256b = 1,
  KVCacheTmemCopy128x128b = 2,
  KVCacheTmemCopy64x128bWarps02And13 = 3,
  KVCacheTmemCopy64x128bWarps01And23 = 4,
  KVCacheTmemCopy32x128b = 5
};

/// Copies a matrix of shared memory to the address; each block its own one, to
/// which the descriptor leads there.
void kvcacheEmulatorTmemCopy(KVCacheThread *thread, const KVCacheSite *site,
                             const void *address, uint64_t descriptor,
                             uint32_t shape, uint32_t isOfPair);

/// The kinds of a product; the last ones have block scales.
enum {
  KVCacheTmemF16 = 0,
  KVCacheTmemTF32 = 1,
  KVCacheTmemF8F6F4 = 2,
  KVCacheTmemI8 = 3,
  KVCacheTmemMXF8F6F4 = 4,
  KVCacheTmemMXF4 = 5,
  KVCacheTmemMXF4NVF4 = 6
};

/// The operands of a product that are no addresses of D or A.
typedef struct KVCacheTmemMma {
  /// Descriptors of matrices in shared memory; that of A has no meaning if
  /// `isTensorA`.
  uint64_t a, b;
  /// The instruction descriptor.
  uint32_t instruction;
  uint32_t kind, isTensorA, isOfPair;
  /// Whether the product is added to what is in D, divided by 2 to the power of
  /// `scale`.
  uint32_t accumulates, scale;
  /// A bit for each lane of D that stays as it is.
  uint32_t disabledLanes[4];
  /// Elements of K that have a block scale of their own, 16 or 32, and the
  /// addresses of those in tensor memory; 0 for kinds without them.
  uint32_t blockSize, scaleA, scaleB;
} KVCacheTmemMma;

/// Multiplies matrices, into D.
void kvcacheEmulatorTmemMma(KVCacheThread *thread, const KVCacheSite *site,
                            const void *d, const void *a,
                            const KVCacheTmemMma *operands);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_TENSORMEMORY_H
