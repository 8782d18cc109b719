//===- Elements.h - Elements of matrices in registers -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_ELEMENTS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_ELEMENTS_H

#include "Formats.h"
#include "Thread.h"
#include "kvcache/Emulator/Matrices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mlir::kvcache::emulator {

inline double fromF16(uint32_t bits) { return decodeF16(bits); }
inline double fromBF16(uint32_t bits) { return decodeBF16(bits); }
inline double fromE4M3(uint32_t bits) { return decodeE4M3(bits); }
inline double fromE5M2(uint32_t bits) { return decodeE5M2(bits); }
inline double fromF32(uint32_t bits) { return floatFromBits(bits); }

/// PTX ISA, "Alternate Floating-Point Data Formats": the low bits of a tf32 are
/// not looked at.
inline double fromTF32(uint32_t bits) { return floatFromBits(bits & ~0x1fffu); }

/// Converts a code of a narrow format.
template <const FloatFormat &format> double fromNarrow(uint32_t bits) {
  return decode(format, bits);
}

inline int32_t fromS8(uint32_t bits) { return static_cast<int8_t>(bits); }
inline int32_t fromUnsigned(uint32_t bits) { return bits; }
inline int32_t fromS4(uint32_t bits) {
  return static_cast<int32_t>(bits << 28) >> 28;
}

inline uint32_t encodeF16(double value) { return encode(kF16, value); }

/// NaN is the one that instructions make (PTX ISA, "Floating-Point
/// Instructions").
inline uint32_t encodeF32(double value) {
  return std::isnan(value) ? 0x7fffffff
                           : bitsOfFloat(static_cast<float>(value));
}

inline uint32_t encodeS32(int64_t value, bool isSaturated) {
  using Limits = std::numeric_limits<int32_t>;
  return isSaturated ? std::clamp<int64_t>(value, Limits::min(), Limits::max())
                     : value;
}

/// The elements of words, of so many bits, as numbers.
template <uint32_t bits, auto decode> struct Unpack {
  static constexpr uint32_t size = 32 / bits;

  template <typename Number>
  static void unpackWord(uint32_t word, Number *numbers) {
    for (uint32_t i = 0; i < size; ++i)
      numbers[i] = decode(word >> i * bits & (~0u >> (32 - bits)));
  }

  /// Accesses an element of a register: the elements of a lane are adjacent,
  /// and so are lanes.
  template <typename Number>
  void operator()(const uint32_t *words, Number *numbers) const {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      unpackWord(words[lane], numbers + lane * size);
  }
};

/// The way back.
template <uint32_t bits, auto encode> struct Pack {
  static constexpr uint32_t size = 32 / bits;

  template <typename Number>
  void operator()(const Number *numbers, uint32_t *words) const {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      words[lane] = 0;
      for (uint32_t i = 0; i < size; ++i)
        words[lane] |= encode(numbers[lane * size + i]) << i * bits;
    }
  }
};

/// Calls `visit` with the Unpack of a kind of elements of A or B.
template <typename Visitor> void withFloats(uint32_t element, Visitor visit) {
  switch (element) {
  case KVCacheElementF16:
    return visit(Unpack<16, fromF16>());
  case KVCacheElementBF16:
    return visit(Unpack<16, fromBF16>());
  case KVCacheElementTF32:
    return visit(Unpack<32, fromTF32>());
  case KVCacheElementE4M3:
    return visit(Unpack<8, fromE4M3>());
  default:
    return visit(Unpack<8, fromE5M2>());
  }
}

template <typename Visitor> void withIntegers(uint32_t element, Visitor visit) {
  switch (element) {
  case KVCacheElementS8:
    return visit(Unpack<8, fromS8>());
  case KVCacheElementU8:
    return visit(Unpack<8, fromUnsigned>());
  case KVCacheElementS4:
    return visit(Unpack<4, fromS4>());
  default:
    return visit(Unpack<4, fromUnsigned>());
  }
}

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_ELEMENTS_H
