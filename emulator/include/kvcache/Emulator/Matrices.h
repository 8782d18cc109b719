//===- Matrices.h - Matrix instructions of a warp ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix, stmatrix and mma.sync (PTX ISA, "Warp-Level Matrix Instructions").
// All 32 lanes execute them together. Those that follow one another in a kernel
// are one program, for which the lanes come together once.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_MATRICES_H
#define KVCACHE_EMULATOR_MATRICES_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Lanes have the registers of a program in memory of their warp, to which
/// `KVCacheThread::registers` points. A register is 32 words, one of each lane.
/// A lane writes its words of operands, and reads those of results after the
/// program; what it leaves there lasts no longer.
enum { KVCacheRegisterBytes = 128 };

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

enum {
  /// ldmatrix: `count` matrices go into `d`.
  KVCacheMatrixLoad = 0,
  /// stmatrix: `count` matrices come from `a`.
  KVCacheMatrixStore = 1,
  /// mma.sync with A by rows and B by columns. Products of floats are exact,
  /// and their sum, with that of C, is rounded once to the type of D: a chip
  /// may lose low bits of terms that are small beside others.
  KVCacheMatrixMultiply = 2
};

typedef struct KVCacheMatrixInstruction {
  const KVCacheSite *site;
  /// The form of an mma; null for other instructions.
  const KVCacheMma *mma;
  uint32_t kind;
  /// The layout and the number of matrices of ldmatrix and stmatrix.
  uint32_t layout, count;
  /// The first of two registers that hold the lower and the upper halves of a
  /// pointer of each lane: the address of a row in shared memory, in the order
  /// of matrices and rows.
  uint32_t row;
  /// The registers of fragments. Elements are packed from the low bits of a
  /// register.
  uint32_t a[4], b[2], c[4], d[4];
} KVCacheMatrixInstruction;

/// Where accesses are checked, each register has two more words of each lane,
/// `numRegisters` registers and twice as many after it: the poisoned bits, and
/// where there are any, their origin (Poison.h). Lanes write those of the
/// operands in `poisonable`, others are never poisoned.
typedef struct KVCacheMatrixProgram {
  /// The first instruction.
  KVCacheSite site;
  const KVCacheMatrixInstruction *instructions;
  int64_t numInstructions, numRegisters;
  const int32_t *poisonable;
  int64_t numPoisonable;
} KVCacheMatrixProgram;

/// Executes the instructions in their order, when all lanes have converged.
void kvcacheEmulatorRunMatrices(KVCacheThread *thread,
                                const KVCacheMatrixProgram *program);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_MATRICES_H
