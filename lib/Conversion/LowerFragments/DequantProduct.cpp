//===- DequantProduct.cpp - Products of stored bytes ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantProduct.h"

#include "WideBytes.h"

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
        multiply(k, widenBytes(b, getElement(), word, /*byParity=*/false),
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
      auto low = widenBytes(b, getElement(), words[first], /*byParity=*/true);
      auto high =
          widenBytes(b, getElement(), words[first + 1], /*byParity=*/true);
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
