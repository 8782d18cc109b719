//===- WideBytes.cpp - Bytes that become f16 ------------------------------===//
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
