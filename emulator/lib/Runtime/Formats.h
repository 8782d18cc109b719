//===- Formats.h - Formats of floats, as codes and numbers ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_RUNTIME_FORMATS_H
#define KVCACHE_LIB_EMULATOR_RUNTIME_FORMATS_H

#include <array>
#include <cstdint>
#include <cstring>

namespace mlir::kvcache::emulator {

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t bitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// A format of floats with a sign, an exponent and a mantissa of at most 23
/// bits, whose numbers are numbers of f32 too.
struct FloatFormat {
  /// The meaning of the codes with the largest magnitudes.
  enum class Top : uint8_t {
    InfinityAndNaN, ///< as in IEEE 754
    NaN,            ///< only all ones is no number
    Numbers         ///< nothing but numbers
  };

  unsigned exponentBits, mantissaBits;
  Top top;

  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  /// The bits of a code, with the sign.
  constexpr unsigned width() const { return 1 + exponentBits + mantissaBits; }
  constexpr uint32_t signBit() const { return 1u << (width() - 1); }
  /// All bits but the sign: where there are NaNs, the one that instructions
  /// make.
  constexpr uint32_t magnitudeMask() const { return signBit() - 1; }
  constexpr uint32_t infinity() const {
    return ((1u << exponentBits) - 1) << mantissaBits;
  }
  /// The code of the largest number.
  constexpr uint32_t largest() const {
    return top == Top::InfinityAndNaN ? infinity() - 1
           : top == Top::NaN          ? magnitudeMask() - 1
                                      : magnitudeMask();
  }
  constexpr bool isNaN(uint32_t code) const {
    uint32_t magnitude = code & magnitudeMask();
    return (top == Top::InfinityAndNaN && magnitude > infinity()) ||
           (top == Top::NaN && magnitude == magnitudeMask());
  }
};

inline constexpr FloatFormat kF16{5, 10, FloatFormat::Top::InfinityAndNaN};
inline constexpr FloatFormat kBF16{8, 7, FloatFormat::Top::InfinityAndNaN};
inline constexpr FloatFormat kTF32{8, 10, FloatFormat::Top::InfinityAndNaN};
inline constexpr FloatFormat kE5M2{5, 2, FloatFormat::Top::InfinityAndNaN};
inline constexpr FloatFormat kE4M3{4, 3, FloatFormat::Top::NaN};
inline constexpr FloatFormat kE3M2{3, 2, FloatFormat::Top::Numbers};
inline constexpr FloatFormat kE2M3{2, 3, FloatFormat::Top::Numbers};
inline constexpr FloatFormat kE2M1{2, 1, FloatFormat::Top::Numbers};

/// The number of a code, exactly; every NaN becomes the one that instructions
/// make, 0x7fffffff.
inline float decode(const FloatFormat &format, uint32_t code) {
  uint32_t magnitude = code & format.magnitudeMask();
  uint32_t sign = code & format.signBit() ? 0x80000000u : 0;
  if (format.isNaN(code))
    return floatFromBits(0x7fffffff);
  if (format.top == FloatFormat::Top::InfinityAndNaN &&
      magnitude == format.infinity())
    return floatFromBits(sign | 0x7f800000);
  // With the exponent's bias of f32 it is too small by a power of two; a
  // subnormal number is one of f32 first.
  float scale = floatFromBits((127 + 127 - format.bias()) << 23);
  float value = floatFromBits(magnitude << (23 - format.mantissaBits));
  return floatFromBits(bitsOfFloat(value * scale) | sign);
}

/// The numbers of all codes of a format of at most 8 bits. Higher bits of an
/// index are not part of the code.
class DecodeTable {
public:
  explicit DecodeTable(const FloatFormat &format) {
    for (uint32_t code = 0; code < values.size(); ++code)
      values[code] = decode(format, code);
  }

  float operator[](uint8_t code) const { return values[code]; }

private:
  std::array<float, 256> values;
};

inline float decodeE4M3(uint8_t code) {
  static const DecodeTable table(kE4M3);
  return table[code];
}

inline float decodeE5M2(uint8_t code) {
  static const DecodeTable table(kE5M2);
  return table[code];
}

inline float decodeF16(uint16_t code) { return decode(kF16, code); }
inline float decodeBF16(uint16_t code) {
  return floatFromBits(uint32_t{code} << 16);
}

/// How a number between two of a format becomes one of them.
struct Rounding {
  enum class Mode : uint8_t {
    NearestEven,
    NearestAway, ///< half goes away from zero
    Zero,
    Up,        ///< of E8M0 only
    Stochastic ///< up where the random number is more than what is missing
  };

  Mode mode = Mode::NearestEven;
  /// Whether what is too large, infinities included, becomes the largest
  /// number.
  bool saturates = false;
  /// For Stochastic, a number of so many bits.
  uint32_t random = 0;
  unsigned randomBits = 0;
};

/// Rounds a number to a format. NaNs become the format's one without a sign,
/// and its largest number where it has none: PTX ISA, cvt. So does what is too
/// large for a format without infinities.
uint32_t encode(const FloatFormat &format, double value,
                const Rounding &rounding = {});

/// E8M0 has the powers of two from 2^-127 to 2^127, and NaN as 0xff.
float decodeE8M0(uint8_t code);
/// Rounds a magnitude, to Zero or Up; the sign is ignored: PTX ISA, cvt. What
/// is less than the smallest power becomes it.
uint8_t encodeE8M0(float value, const Rounding &rounding);

} // namespace mlir::kvcache::emulator

#endif // KVCACHE_LIB_EMULATOR_RUNTIME_FORMATS_H
