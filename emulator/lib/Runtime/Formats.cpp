//===- Formats.cpp - Rounding to formats of floats ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formats.h"

#include <algorithm>
#include <cmath>

using namespace mlir::kvcache;
using namespace mlir::kvcache::emulator;

/// The code of a magnitude that is too large.
static uint32_t encodeOverflow(const FloatFormat &format, bool saturates) {
  if (saturates || format.top == FloatFormat::Top::Numbers)
    return format.largest();
  return format.top == FloatFormat::Top::NaN ? format.magnitudeMask()
                                             : format.infinity();
}

/// Whether `kept` and `rest` between 0 and 1, exclusive, become `kept` and 1.
static bool roundsUp(uint64_t kept, double rest, const Rounding &rounding) {
  switch (rounding.mode) {
  case Rounding::Mode::NearestEven:
    return rest > 0.5 || (rest == 0.5 && kept % 2 == 1);
  case Rounding::Mode::NearestAway:
    return rest >= 0.5;
  case Rounding::Mode::Zero:
    return false;
  case Rounding::Mode::Up:
    return rest > 0;
  case Rounding::Mode::Stochastic:
    return rest + std::ldexp(rounding.random, -int(rounding.randomBits)) >= 1;
  }
  return false;
}

uint32_t emulator::encode(const FloatFormat &format, double value,
                          const Rounding &rounding) {
  if (std::isnan(value))
    return format.top == FloatFormat::Top::Numbers ? format.largest()
                                                   : format.magnitudeMask();
  uint32_t sign = std::signbit(value) ? format.signBit() : 0;
  double magnitude = std::fabs(value);
  if (std::isinf(value))
    return sign | encodeOverflow(format, rounding.saturates);
  if (magnitude == 0)
    return sign;
  // The last bit that is kept counts 1 in `scaled`.
  int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  double scaled = std::ldexp(magnitude, int(format.mantissaBits) - exponent);
  uint64_t kept = static_cast<uint64_t>(scaled);
  kept += roundsUp(kept, scaled - kept, rounding);
  // The leading bit of a normal number adds one to the exponent.
  uint64_t code =
      kept + (uint64_t(exponent - 1 + format.bias()) << format.mantissaBits);
  if (code <= format.largest())
    return sign | static_cast<uint32_t>(code);
  bool towardsZero = rounding.mode == Rounding::Mode::Zero;
  return sign | encodeOverflow(format, rounding.saturates || towardsZero);
}

float emulator::decodeE8M0(uint8_t code) {
  return code == 0xff ? floatFromBits(0x7fffffff)
                      : std::ldexp(1.0f, code - 127);
}

uint8_t emulator::encodeE8M0(float value, const Rounding &rounding) {
  constexpr int largest = 0xfe, nan = 0xff;
  float magnitude = std::fabs(value);
  if (std::isnan(value))
    return nan;
  if (std::isinf(value))
    return rounding.saturates ? largest : nan;
  if (magnitude == 0)
    return 0;
  int exponent = std::ilogb(magnitude);
  if (rounding.mode == Rounding::Mode::Up &&
      std::ldexp(1.0, exponent) < magnitude)
    ++exponent;
  return std::clamp(exponent + 127, 0, rounding.saturates ? largest : nan);
}
