//===- Math.cpp - Arithmetic of the chip ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Emulator/Math.h"
#include "Block.h"
#include "Formats.h"

#include <algorithm>
#include <cmath>

using namespace mlir::kvcache::emulator;

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// The format of a KVCacheFormat; null for E8M0.
static const FloatFormat *getFormat(uint32_t format) {
  switch (format) {
  case KVCacheFormatF16:
    return &kF16;
  case KVCacheFormatBF16:
    return &kBF16;
  case KVCacheFormatTF32:
    return &kTF32;
  case KVCacheFormatE4M3:
    return &kE4M3;
  case KVCacheFormatE5M2:
    return &kE5M2;
  case KVCacheFormatE2M3:
    return &kE2M3;
  case KVCacheFormatE3M2:
    return &kE3M2;
  case KVCacheFormatE2M1:
    return &kE2M1;
  default:
    return nullptr;
  }
}

/// The bits that a code takes in a pair.
static unsigned getFieldBits(uint32_t format) {
  const FloatFormat *known = getFormat(format);
  unsigned width = known ? known->width() : 8;
  return width > 8 ? 16 : width > 4 ? 8 : 4;
}

/// `random` has the bits for this element, and those of others above.
static Rounding getRounding(uint32_t format, uint32_t flags, uint32_t random) {
  Rounding rounding;
  switch (flags & KVCacheConvertRounding) {
  case KVCacheConvertNearestAway:
    rounding.mode = Rounding::Mode::NearestAway;
    break;
  case KVCacheConvertZero:
    rounding.mode = Rounding::Mode::Zero;
    break;
  case KVCacheConvertUp:
    rounding.mode = Rounding::Mode::Up;
    break;
  case KVCacheConvertStochastic:
    rounding.mode = Rounding::Mode::Stochastic;
    break;
  default:
    break;
  }
  rounding.saturates = flags & KVCacheConvertSaturate;
  rounding.randomBits = format == KVCacheFormatF16 ? 13 : 16;
  rounding.random = random & ((1u << rounding.randomBits) - 1);
  return rounding;
}

static uint32_t convert(float value, uint32_t format, uint32_t flags,
                        uint32_t random = 0) {
  Rounding rounding = getRounding(format, flags, random);
  const FloatFormat *known = getFormat(format);
  if (!known)
    return encodeE8M0(value, rounding);
  if ((flags & KVCacheConvertRelu) && std::signbit(value) && !std::isnan(value))
    value = 0;
  return encode(*known, value, rounding);
}

static float decodeAny(uint32_t format, uint32_t code) {
  const FloatFormat *known = getFormat(format);
  return known ? decode(*known, code) : decodeE8M0(code);
}

uint32_t kvcacheEmulatorConvertF32x2(KVCacheThread *, const KVCacheSite *,
                                     float high, float low, uint32_t random,
                                     uint32_t format, uint32_t flags) {
  return convert(high, format, flags, random >> 16) << getFieldBits(format) |
         convert(low, format, flags, random);
}

uint32_t kvcacheEmulatorConvertF32x4(KVCacheThread *, const KVCacheSite *,
                                     float a, float b, float c, float d,
                                     uint32_t random, uint32_t format,
                                     uint32_t flags) {
  unsigned bits = getFieldBits(format);
  uint32_t codes = 0;
  for (auto [value, half] : {std::pair{a, random >> 16},
                             {b, random},
                             {c, random >> 16},
                             {d, random}})
    codes = codes << bits | convert(value, format, flags, half);
  return codes;
}

uint32_t kvcacheEmulatorConvertPair(KVCacheThread *, const KVCacheSite *,
                                    uint32_t pair, uint32_t from, uint32_t to,
                                    uint32_t flags) {
  unsigned bits = getFieldBits(from);
  uint32_t mask = (1u << bits) - 1;
  auto convertOne = [&](uint32_t code) {
    return convert(decodeAny(from, code & mask), to, flags);
  };
  return convertOne(pair >> bits) << getFieldBits(to) | convertOne(pair);
}

uint32_t kvcacheEmulatorConvertTF32(KVCacheThread *, const KVCacheSite *,
                                    float value, uint32_t flags) {
  if (std::isnan(value))
    return 0x7fffffff;
  return convert(value, KVCacheFormatTF32, flags) << 13;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// The byte of the eight that byte `i` of the result is, in the modes that use
/// the lowest two bits of the selector, `n`.
static unsigned selectByte(uint32_t mode, unsigned n, unsigned i) {
  switch (mode) {
  case 1: // f4e
    return n + i;
  case 2: // b4e
    return (n + 8 - i) % 8;
  case 3: // rc8
    return n;
  case 4: // ecl
    return std::max(n, i);
  case 5: // ecr
    return std::min(n, i);
  default: // rc16
    return n % 2 * 2 + i % 2;
  }
}

uint32_t kvcacheEmulatorPermute(KVCacheThread *, const KVCacheSite *,
                                uint32_t low, uint32_t high, uint32_t selector,
                                uint32_t mode) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned nibble =
        mode == 0 ? selector >> 4 * i & 0xf : selectByte(mode, selector & 3, i);
    uint32_t byte = bytes >> 8 * (nibble & 7) & 0xff;
    // The highest bit of a nibble asks for the sign of the byte, eight times.
    if (nibble & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static float combine(float a, float b, uint32_t operation) {
  bool isNaN = std::isnan(a) || std::isnan(b);
  switch (operation) {
  case KVCacheAtomicAdd:
    return a + b;
  case KVCacheAtomicSub:
    return a - b;
  case KVCacheAtomicMinimum:
    return isNaN ? std::nanf("") : std::fmin(a, b);
  case KVCacheAtomicMaximum:
    return isNaN ? std::nanf("") : std::fmax(a, b);
  case KVCacheAtomicMin:
    return std::fmin(a, b);
  default:
    return std::fmax(a, b);
  }
}

static uint16_t combineBits(uint16_t before, uint16_t operand,
                            uint32_t operation) {
  return encode(kBF16,
                combine(decodeBF16(before), decodeBF16(operand), operation));
}

template <typename Word>
static Word combineAtomically(void *pointer, Word operand, uint32_t operation) {
  auto *word = static_cast<Word *>(pointer);
  Word before = __atomic_load_n(word, __ATOMIC_SEQ_CST), after = 0;
  do {
    after = 0;
    for (unsigned shift = 0; shift < 8 * sizeof(Word); shift += 16)
      after |= Word(combineBits(before >> shift, operand >> shift, operation))
               << shift;
  } while (!__atomic_compare_exchange_n(word, &before, after, /*weak=*/true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return before;
}

uint32_t kvcacheEmulatorAtomicBF16(KVCacheThread *self, const KVCacheSite *site,
                                   void *pointer, uint32_t value,
                                   uint32_t lanes, uint32_t operation) {
  Thread &thread = Thread::get(self);
  thread.block->checkAlignment(thread, site, pointer, 2 * lanes);
  if (lanes == 2)
    return combineAtomically<uint32_t>(pointer, value, operation);
  return combineAtomically<uint16_t>(pointer, value, operation);
}

//===----------------------------------------------------------------------===//
// The math library
//===----------------------------------------------------------------------===//

double kvcacheEmulatorMath(KVCacheThread *, const KVCacheSite *, double x,
                           double y, uint32_t function) {
  switch (function) {
  case KVCacheMathAcosh:
    return std::acosh(x);
  case KVCacheMathAsinh:
    return std::asinh(x);
  case KVCacheMathAtanh:
    return std::atanh(x);
  case KVCacheMathCbrt:
    return std::cbrt(x);
  case KVCacheMathErf:
    return std::erf(x);
  case KVCacheMathErfc:
    return std::erfc(x);
  case KVCacheMathExpm1:
    return std::expm1(x);
  case KVCacheMathFmod:
    return std::fmod(x, y);
  case KVCacheMathHypot:
    return std::hypot(x, y);
  case KVCacheMathJ0:
    return j0(x);
  case KVCacheMathJ1:
    return j1(x);
  case KVCacheMathLgamma: {
    int sign;
    return lgamma_r(x, &sign);
  }
  case KVCacheMathLog1p:
    return std::log1p(x);
  case KVCacheMathLogb:
    return std::logb(x);
  case KVCacheMathRemainder:
    return std::remainder(x, y);
  case KVCacheMathTgamma:
    return std::tgamma(x);
  case KVCacheMathY0:
    return y0(x);
  case KVCacheMathY1:
    return y1(x);
  default:
    return std::nan("");
  }
}
