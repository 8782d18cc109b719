//===- Numbers.cpp - Numbers as arguments of a call -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <cstring>

using namespace mlir::kvcache;
using namespace mlir::kvcache::runtime;

namespace {
/// An integer of 65 bits: what is passed for a 64-bit integer of either sign.
struct Number {
  uint64_t bits;
  bool isNegative;
};
} // namespace

static uint64_t getMask(int32_t bits) { return ~uint64_t{0} >> (64 - bits); }

static bool isUnsigned(const KVCacheValue &type) { return type.code == 1; }

/// The largest number, and the magnitude of the smallest one.
static uint64_t getHigh(const KVCacheValue &type) {
  bool hasSignBit = !isUnsigned(type) && !(type.flags & KVCACHE_SIGNLESS);
  return getMask(type.bits) >> hasSignBit;
}
static uint64_t getLow(const KVCacheValue &type) {
  return isUnsigned(type) ? 0 : uint64_t{1} << (type.bits - 1);
}

static bool fits(const KVCacheValue &type, const Number &number) {
  return number.isNegative ? -number.bits <= getLow(type)
                           : number.bits <= getHigh(type);
}

static bool raiseOverflow(const KVCacheFunction &function, int32_t index,
                          const std::string &got) {
  const KVCacheValue &type = function.arguments[index];
  uint64_t low = getLow(type);
  return raiseWrong("OverflowError", function, index,
                    "an int from " + std::string(low ? "-" : "") +
                        std::to_string(low) + " to " +
                        std::to_string(getHigh(type)),
                    got);
}

/// Reads an integer of 65 bits; false for longer ones.
static bool readBigInt(const ffi::BigInt &big, Number &number) {
  number = {big.words[0], false};
  return big.size == 2 && big.words[1] == 0;
}

static int64_t *unpackInteger(const KVCacheFunction &function, int32_t index,
                              const ffi::Any &value, int64_t *words) {
  const KVCacheValue &type = function.arguments[index];
  Number number;
  if (value.type == ffi::kInt || value.type == ffi::kBool) {
    number = {static_cast<uint64_t>(value.integer), value.integer < 0};
  } else if (value.type == ffi::kBigInt) {
    const auto &big = *static_cast<const ffi::BigInt *>(value.pointer);
    if (!readBigInt(big, number)) {
      raiseOverflow(function, index, "one of more than 64 bits");
      return nullptr;
    }
  } else {
    raiseWrong("TypeError", function, index, "an int", describe(value));
    return nullptr;
  }
  if (!fits(type, number)) {
    raiseOverflow(
        function, index,
        (number.isNegative ? "-" : "") +
            std::to_string(number.isNegative ? -number.bits : number.bits));
    return nullptr;
  }
  *words = static_cast<int64_t>(number.bits & getMask(type.bits));
  return words + 1;
}

static int64_t encode(const KVCacheValue &type, double number) {
  int64_t word = 0;
  if (type.bits == 64) {
    std::memcpy(&word, &number, sizeof(number));
  } else if (type.bits == 32) {
    auto narrow = static_cast<float>(number);
    std::memcpy(&word, &narrow, sizeof(narrow));
  } else {
    word = encodeFloat(*type.format, type.bits, number);
  }
  return word;
}

int64_t *runtime::unpackNumber(const KVCacheFunction &function, int32_t index,
                               const ffi::Any &value, int64_t *words) {
  const KVCacheValue &type = function.arguments[index];
  if (type.kind == KVCACHE_INTEGER)
    return unpackInteger(function, index, value, words);
  if (value.type == ffi::kFloat) {
    *words = encode(type, value.real);
  } else if (value.type == ffi::kInt || value.type == ffi::kBool) {
    *words = encode(type, static_cast<double>(value.integer));
  } else {
    raiseWrong("TypeError", function, index, "a float", describe(value));
    return nullptr;
  }
  return words + 1;
}
