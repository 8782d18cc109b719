//===- Math.h - Arithmetic of the chip, emulated ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between formats of floats (PTX ISA, cvt), and other arithmetic
// that the host has no instructions for. Arithmetic that it has, and the
// approximations of the chip, are compiled: an approximation gives the number
// nearest to the result.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_EMULATOR_MATH_H
#define KVCACHE_EMULATOR_MATH_H

#include "kvcache/Emulator/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/// Formats of floats that are codes in integers.
enum {
  KVCacheFormatF16,
  KVCacheFormatBF16,
  KVCacheFormatTF32,
  KVCacheFormatE4M3,
  KVCacheFormatE5M2,
  KVCacheFormatE2M3,
  KVCacheFormatE3M2,
  KVCacheFormatE2M1,
  /// Powers of two, without a sign.
  KVCacheFormatE8M0
};

/// How a conversion rounds, one of the first five, and what else it does.
enum {
  KVCacheConvertNearestEven,
  KVCacheConvertNearestAway,
  KVCacheConvertZero,
  KVCacheConvertUp,
  /// By bits of a random number: those of the element's half of it, of f16 the
  /// lower 13. What a chip takes of them is in pictures of the PTX ISA, cvt.rs,
  /// so that single results can differ from this.
  KVCacheConvertStochastic,
  KVCacheConvertRounding = 7,
  /// A value that is too large becomes the largest number.
  KVCacheConvertSaturate = 8,
  /// A negative value becomes zero.
  KVCacheConvertRelu = 16
};

/// Rounds two numbers to a format. The result has the code of `high` above that
/// of `low`; codes of six bits take a byte.
uint32_t kvcacheEmulatorConvertF32x2(KVCacheThread *thread,
                                     const KVCacheSite *site, float high,
                                     float low, uint32_t random,
                                     uint32_t format, uint32_t flags);

/// Rounds four numbers to a format of at most 8 bits; `a` becomes the highest
/// code. `a` and `c` take the upper half of `random`.
uint32_t kvcacheEmulatorConvertF32x4(KVCacheThread *thread,
                                     const KVCacheSite *site, float a, float b,
                                     float c, float d, uint32_t random,
                                     uint32_t format, uint32_t flags);

/// Converts two codes that are packed like the results of
/// `kvcacheEmulatorConvertF32x2`.
uint32_t kvcacheEmulatorConvertPair(KVCacheThread *thread,
                                    const KVCacheSite *site, uint32_t pair,
                                    uint32_t from, uint32_t to, uint32_t flags);

/// Rounds to tf32, whose codes are those of f32 without the lowest 13 bits.
uint32_t kvcacheEmulatorConvertTF32(KVCacheThread *thread,
                                    const KVCacheSite *site, float value,
                                    uint32_t flags);

/// PTX ISA, prmt: the modes in the order default, f4e, b4e, rc8, ecl, ecr,
/// rc16.
uint32_t kvcacheEmulatorPermute(KVCacheThread *thread, const KVCacheSite *site,
                                uint32_t low, uint32_t high, uint32_t selector,
                                uint32_t mode);

/// The operation of an atomic on the value in memory. Minimum and Maximum give
/// NaN where one of the two is, Min and Max the other one.
enum {
  KVCacheAtomicAdd,
  KVCacheAtomicSub,
  KVCacheAtomicMin,
  KVCacheAtomicMax,
  KVCacheAtomicMinimum,
  KVCacheAtomicMaximum
};

/// An atomic on one bf16 or two. Returns the bits that were there.
uint32_t kvcacheEmulatorAtomicBF16(KVCacheThread *thread,
                                   const KVCacheSite *site, void *pointer,
                                   uint32_t value, uint32_t lanes,
                                   uint32_t operation);

/// Functions of the math library that LLVM has no intrinsics for.
enum {
  KVCacheMathAcosh,
  KVCacheMathAsinh,
  KVCacheMathAtanh,
  KVCacheMathCbrt,
  KVCacheMathErf,
  KVCacheMathErfc,
  KVCacheMathExpm1,
  KVCacheMathFmod,
  KVCacheMathHypot,
  KVCacheMathJ0,
  KVCacheMathJ1,
  KVCacheMathLgamma,
  KVCacheMathLog1p,
  KVCacheMathLogb,
  KVCacheMathRemainder,
  KVCacheMathTgamma,
  KVCacheMathY0,
  KVCacheMathY1
};

/// `y` is for functions of two arguments.
double kvcacheEmulatorMath(KVCacheThread *thread, const KVCacheSite *site,
                           double x, double y, uint32_t function);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif // KVCACHE_EMULATOR_MATH_H
