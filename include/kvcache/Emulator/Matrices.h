//===- Matrices.h - Matrix instructions of a warp ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix, stmatrix and mma.sync (PTX ISA, "Warp-Level Matrix Instructions").
// All 32 lanes execute them together.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_MATRICES_H
#define KVCACHE_EMULATOR_MATRICES_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// The fragments that a lane has: `a`, `b` and `c` are operands, `d` the result
/// of an instruction. Elements are packed from the low bits of a register.
typedef struct KVCacheMatrixRegisters {
  uint32_t a[4], b[2], c[4], d[4];
  /// Where the module is sanitized: the origin of poison in operands, and then
  /// in the result, or 0; if it is not, the poisoned bits (Poison.h). Those of
  /// the result are there in any case.
  uint32_t origin;
  uint32_t poisonA[4], poisonB[2], poisonC[4], poisonD[4];
} KVCacheMatrixRegisters;

/// How the bytes of rows in memory go to registers.
enum {
  /// Rows of 8 elements of 16 bits, 8 to a matrix.
  KVCacheMatrixB16 = 0,
  KVCacheMatrixB16Transposed = 1,
  /// Rows of 16 bytes, 16 to a matrix that is loaded, 8 to one that is stored.
  KVCacheMatrixB8Transposed = 2,
  /// Rows of 16 elements of 6 or 4 bits, packed at the front of 16 bytes, which
  /// become the low bits of bytes; 8 to a matrix.
  KVCacheMatrixB6 = 3,
  KVCacheMatrixB4 = 4
};

/// ldmatrix: loads `count` matrices into `d`; `row` is the address of one row,
/// in shared memory, from each lane in the order of matrices and rows.
void kvcacheEmulatorLoadMatrix(KVCacheThread *thread, const KVCacheSite *site,
                               const void *row, uint32_t count, uint32_t layout,
                               KVCacheMatrixRegisters *registers);

/// stmatrix: stores `count` matrices from `a`.
void kvcacheEmulatorStoreMatrix(KVCacheThread *thread, const KVCacheSite *site,
                                void *row, uint32_t count, uint32_t layout,
                                KVCacheMatrixRegisters *registers);

/// The elements of a matrix.
enum {
  KVCacheElementF16 = 0,
  KVCacheElementBF16 = 1,
  KVCacheElementTF32 = 2,
  KVCacheElementE4M3 = 3,
  KVCacheElementE5M2 = 4,
  KVCacheElementS8 = 5,
  KVCacheElementU8 = 6,
  KVCacheElementS4 = 7,
  KVCacheElementU4 = 8,
  KVCacheElementF32 = 9,
  KVCacheElementS32 = 10
};

/// D = A B + C, where A is m by k, B k by n.
typedef struct KVCacheMma {
  uint32_t m, n, k;
  /// The elements of A, B, C and D.
  uint32_t a, b, c, d;
  /// Whether an integer that is too large becomes the largest, rather than
  /// wrapping around.
  uint32_t isSaturated;
} KVCacheMma;

/// mma.sync with A by rows and B by columns. Products of floats are exact, and
/// their sum, with that of C, is rounded once to the type of D: a chip may lose
/// low bits of terms that are small beside others.
void kvcacheEmulatorMma(KVCacheThread *thread, const KVCacheSite *site,
                        const KVCacheMma *form,
                        KVCacheMatrixRegisters *registers);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_MATRICES_H
