//===- DequantProduct.cpp - Products of stored bytes ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantProduct.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Rows and columns of an instruction's operand, columns of a load, and
/// elements of an instruction.
static constexpr int64_t kOperand = 16, kLoaded = 32, kAccElements = 4;

DequantProduct::DequantProduct(OpBuilder &builder, FragmentMmaOp op,
                               ValueRange a, MutableArrayRef<Value> acc)
    : b(builder, op.getLoc()), op(op), a(a), acc(acc),
      loader(
          builder, op.getLoc(), op.getB(),
          TeamThread::get(b, op.getType().getComplete(), op.getThread()).lane) {
}

void DequantProduct::emit() {
  op.getMajorB() == Major::K ? emitKMajor() : emitMNMajor();
}

// Queries stay in registers while keys pass.
void DequantProduct::emitKMajor() {
  SmallVector<SmallVector<Value>> loaded(op.getSizeN() / kOperand);
  for (int64_t k = 0; k < op.getSizeK(); k += kOperand)
    for (auto [i, words] : llvm::enumerate(loaded)) {
      int64_t n = static_cast<int64_t>(i) * kOperand;
      if (k % kLoaded == 0)
        words = load(/*row=*/n, /*column=*/k);
      for (int64_t half = 0; half < 2; ++half) {
        Value word = words[2 * (k % kLoaded / kOperand) + half];
        multiply(k, widen(word, /*byParity=*/false),
                 (n + 8 * half) / 8 * kAccElements);
      }
    }
}

// The accumulator stays in registers while values pass.
void DequantProduct::emitMNMajor() {
  SmallVector<SmallVector<Value>> loaded(op.getSizeK() / kOperand);
  for (int64_t n = 0; n < op.getSizeN(); n += kOperand)
    for (auto [i, words] : llvm::enumerate(loaded)) {
      int64_t k = static_cast<int64_t>(i) * kOperand;
      if (n % kLoaded == 0)
        words = load(/*row=*/k, /*column=*/n);
      int64_t first = 2 * (n % kLoaded / kOperand);
      auto low = widen(words[first], /*byParity=*/true);
      auto high = widen(words[first + 1], /*byParity=*/true);
      for (int64_t odd = 0; odd < 2; ++odd)
        multiply(k, {low[odd], high[odd]}, (n / 8 + odd) * kAccElements);
    }
}

SmallVector<Value> DequantProduct::load(int64_t row, int64_t column) {
  constexpr int64_t words = 4;
  bool isKMajor = op.getMajorB() == Major::K;
  int64_t rest = (isKMajor ? op.getSizeK() : op.getSizeN()) - column;
  return loader.load(b.add(op.getBRow(), b.index(row)),
                     b.add(op.getBColumn(), b.index(column)),
                     /*isTransposed=*/!isKMajor,
                     rest < kLoaded ? words / 2 : words);
}

void DequantProduct::multiply(int64_t k, ValueRange words, int64_t firstAcc) {
  constexpr size_t left = 4;
  emitSyncInstruction(b.builder, b.loc, /*isHalf=*/true,
                      a.slice(k / kOperand * left, left), words,
                      acc.slice(firstAcc, kAccElements));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value DequantProduct::permute(Value low, Value high, uint32_t selector) const {
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

std::array<Value, 2> DequantProduct::widen(Value word, bool byParity) {
  Type element = op.getB().getType().getElementType();
  if (element.isInteger())
    return widenIntegers(word, byParity);
  if (byParity)
    word = permute(word, word, 0x3120);
  Value wide = arith::ExtFOp::create(
      b.builder, b.loc, VectorType::get(4, b.builder.getF16Type()),
      castVector(b, asVector(b, word), 4, element));
  Value words = castVector(b, wide, 2, b.builder.getI32Type());
  std::array<Value, 2> pairs;
  for (auto [i, pair] : llvm::enumerate(pairs))
    pair = vector::ExtractOp::create(b.builder, b.loc, words, i);
  return pairs;
}

// A byte u of the mantissa of 1024 is 1024 + u: here u is x + 128.
std::array<Value, 2> DequantProduct::widenIntegers(Value word,
                                                   bool byParity) const {
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
    Value moved = permute(shifted, b.i32(kUpper), selector);
    Value number = arith::SubFOp::create(
        b.builder, b.loc, castVector(b, asVector(b, moved), 2, f16), offset);
    pair = vector::ExtractOp::create(b.builder, b.loc,
                                     castVector(b, number, 1, i32), 0);
  }
  return pairs;
}
