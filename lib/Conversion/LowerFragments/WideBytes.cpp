//===- WideBytes.cpp - Stored elements that become f16 --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WideBytes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

static Value permute(const IndexBuilder &b, Value low, Value high,
                     uint32_t selector) {
  return NVVM::PermuteOp::create(b.builder, b.loc, b.builder.getI32Type(), low,
                                 high, b.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

static Value castVector(const IndexBuilder &b, Value value, int64_t count,
                        Type type) {
  return vector::BitCastOp::create(b.builder, b.loc,
                                   VectorType::get(count, type), value);
}

static Value asVector(const IndexBuilder &b, Value value) {
  return vector::FromElementsOp::create(
      b.builder, b.loc, VectorType::get(1, value.getType()), value);
}

// A byte u of the mantissa of 1024 is 1024 + u: here u is x + 128.
static std::array<Value, 2> widenIntegers(const IndexBuilder &b, Value word,
                                          bool byParity) {
  constexpr uint32_t kSigns = 0x80808080, kUpper = 0x64646464;
  Type f16 = b.builder.getF16Type(), i32 = b.builder.getI32Type();
  Value shifted = arith::XOrIOp::create(b.builder, b.loc, word,
                                        b.i32(static_cast<int32_t>(kSigns)));
  Value offset = arith::ConstantOp::create(
      b.builder, b.loc,
      DenseElementsAttr::get(VectorType::get(2, f16),
                             b.builder.getF16FloatAttr(1024 + 128)));
  const uint32_t selectors[] = {byParity ? 0x4240u : 0x4140u,
                                byParity ? 0x4341u : 0x4342u};
  std::array<Value, 2> pairs;
  for (auto [pair, selector] : llvm::zip_equal(pairs, selectors)) {
    Value moved = permute(b, shifted, b.i32(kUpper), selector);
    Value number = arith::SubFOp::create(
        b.builder, b.loc, castVector(b, asVector(b, moved), 2, f16), offset);
    pair = vector::ExtractOp::create(b.builder, b.loc,
                                     castVector(b, number, 1, i32), 0);
  }
  return pairs;
}

std::array<Value, 2> kvcache::widenBytes(const IndexBuilder &b, Type element,
                                         Value word, bool byParity) {
  if (element.isInteger())
    return widenIntegers(b, word, byParity);
  if (byParity)
    word = permute(b, word, word, 0x3120);
  Value wide = arith::ExtFOp::create(
      b.builder, b.loc, VectorType::get(4, b.builder.getF16Type()),
      castVector(b, asVector(b, word), 4, element));
  Value words = castVector(b, wide, 2, b.builder.getI32Type());
  std::array<Value, 2> pairs;
  for (auto [i, pair] : llvm::enumerate(pairs))
    pair = vector::ExtractOp::create(b.builder, b.loc, words, i);
  return pairs;
}

/// The bits of a word that are shifted to the left, or right, in a mask.
static Value moveBits(const IndexBuilder &b, Value word, int64_t shift,
                      uint32_t mask) {
  if (shift > 0)
    word = arith::ShLIOp::create(b.builder, b.loc, word, b.i32(shift));
  if (shift < 0)
    word = arith::ShRUIOp::create(b.builder, b.loc, word, b.i32(-shift));
  return arith::AndIOp::create(b.builder, b.loc, word,
                               b.i32(static_cast<int32_t>(mask)));
}

/// The products of two f16 in a word and two factors.
static Value multiplyHalves(const IndexBuilder &b, Value word, Value factors) {
  Value halves = castVector(b, asVector(b, word), 2, b.builder.getF16Type());
  Value product = arith::MulFOp::create(b.builder, b.loc, halves, factors);
  return vector::ExtractOp::create(
      b.builder, b.loc, castVector(b, product, 1, b.builder.getI32Type()), 0);
}

// Four elements become the high bytes of four f16 at once, those with even
// numbers and those with odd ones. `prmt` places two of them; low bytes are 0.
std::array<Value, 4> kvcache::widenFloats(const IndexBuilder &b, Value word,
                                          Value factors) {
  constexpr uint32_t kSigns = 0x80808080, kMagnitudes = 0x0E0E0E0E;
  // The places of the signs and magnitudes of elements 0 and 1.
  constexpr int64_t kShifts[2][2] = {{4, 1}, {0, -3}};
  constexpr uint32_t kPlaces[] = {0x2404, 0x3414};
  std::array<Value, 4> words;
  for (auto [odd, shifts] : llvm::enumerate(kShifts)) {
    Value bytes = arith::OrIOp::create(
        b.builder, b.loc, moveBits(b, word, shifts[0], kSigns),
        moveBits(b, word, shifts[1], kMagnitudes));
    for (auto [i, places] : llvm::enumerate(kPlaces)) {
      Value elements = permute(b, bytes, b.i32(0), places);
      words[2 * i + odd] =
          factors ? multiplyHalves(b, elements, factors) : elements;
    }
  }
  return words;
}

// The integers are mantissas of subnormal numbers.
std::array<Value, 4> kvcache::widenNibbles(const IndexBuilder &b, Value word) {
  constexpr int64_t kBits = 4;
  constexpr uint32_t kMantissas = 0x000F000F;
  std::array<Value, 4> words;
  for (auto [i, wide] : llvm::enumerate(words))
    wide = moveBits(b, word, -kBits * static_cast<int64_t>(i), kMantissas);
  return words;
}
