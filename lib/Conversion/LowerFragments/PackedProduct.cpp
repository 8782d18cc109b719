//===- PackedProduct.cpp - Products of elements of 4 bits -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedProduct.h"

#include "WideBytes.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

PackedProduct::PackedProduct(OpBuilder &builder, FragmentMmaOp op, ValueRange a,
                             MutableArrayRef<Value> acc)
    : b(builder, op.getLoc()), op(op), a(a), acc(acc),
      lane(TeamThread::get(b, op.getType().getComplete(), op.getThread()).lane),
      loader(builder, op.getLoc(), op.getB(), lane) {}

void PackedProduct::emit() {
  op.getMajorB() == Major::K ? emitKMajor() : emitMNMajor();
}

// A lane has a row of each matrix, and eight elements of it: lanes 0 and 1 of
// four have the first group of a pair.
void PackedProduct::emitKMajor() {
  constexpr int64_t lanesOfRow = 4, halfRows = 8;
  Value row = b.div(lane, lanesOfRow),
        number = b.div(b.rem(lane, lanesOfRow), 2);
  for (int64_t n = 0; n < op.getSizeN(); n += kOperand) {
    SmallVector<Value> scales[2], words;
    if (op.getScales())
      for (auto [half, some] : llvm::enumerate(scales))
        some = loadScales(b.add(row, b.index(n + halfRows * half)), number);
    for (int64_t k = 0; k < op.getSizeK(); k += kPair) {
      if (k % kLoaded == 0)
        words = load(/*row=*/n, /*element=*/k);
      for (int64_t half = 0; half < 2; ++half) {
        auto wide = widen(words[2 * (k % kLoaded / kPair) + half], scales[half],
                          scales[half], k / kPair);
        int64_t first = (n / halfRows + half) * kAccElements;
        multiply(k, {wide[0], wide[1]}, first);
        multiply(k + kOperand, {wide[2], wide[3]}, first);
      }
    }
  }
}

// A lane has four elements of two rows of each matrix: lanes 0 to 15 have those
// of the first group of a pair.
void PackedProduct::emitMNMajor() {
  constexpr int64_t lanesOfGroup = 16, lanesOfRow = 4, halfRows = 8, words = 4;
  Value number = b.div(lane, lanesOfGroup),
        row = b.mul(b.rem(lane, lanesOfRow), 2);
  for (int64_t k = 0; k < op.getSizeK(); k += kOperand) {
    SmallVector<Value> scales[2][2], loaded;
    for (int64_t half = 0; op.getScales() && half < 2; ++half)
      for (int64_t odd = 0; odd < 2; ++odd)
        scales[half][odd] =
            loadScales(b.add(row, b.index(k + halfRows * half + odd)), number);
    for (int64_t n = 0; n < op.getSizeN(); n += kPair) {
      if (n % kLoaded == 0)
        loaded = load(/*row=*/k, /*element=*/n);
      std::array<Value, words> wide[2];
      for (int64_t half = 0; half < 2; ++half)
        wide[half] = widen(loaded[2 * (n % kLoaded / kPair) + half],
                           scales[half][0], scales[half][1], n / kPair);
      for (int64_t i = 0; i < words; ++i)
        multiply(k, {wide[0][i], wide[1][i]},
                 (n / kPair * words + i) * kAccElements);
    }
  }
}

std::array<Value, 4> PackedProduct::widen(Value word, ArrayRef<Value> first,
                                          ArrayRef<Value> second,
                                          int64_t pair) {
  if (op.getPacked()->isInteger())
    return widenNibbles(b, word);
  Value factors;
  if (op.getScales())
    factors = vector::FromElementsOp::create(
        b.builder, b.loc, VectorType::get(2, b.builder.getF16Type()),
        ValueRange{first[pair], second[pair]});
  return widenFloats(b, word, factors);
}

SmallVector<Value> PackedProduct::load(int64_t row, int64_t element) {
  constexpr int64_t words = 4;
  int64_t rest = op.countRowElements() - element;
  return loader.load(
      b.add(op.getBRow(), b.index(row)),
      b.add(op.getBColumn(), b.index(element / FragmentMmaOp::kPacked)),
      /*isTransposed=*/op.getMajorB() == Major::MN,
      rest < kLoaded ? words / 2 : words);
}

SmallVector<Value> PackedProduct::loadScales(Value row, Value numberInPair) {
  constexpr int64_t bytesOfPair = kPair / FragmentMmaOp::kPacked;
  int64_t pairsOfRow = op.getB().getType().getColumns() / bytesOfPair;
  Value column = b.add(b.mul(numberInPair, pairsOfRow),
                       b.div(op.getBColumn(), bytesOfPair));
  auto type =
      VectorType::get(op.countRowElements() / kPair, b.builder.getF16Type());
  Value loaded = TileLoadOp::create(b.builder, b.loc, type, op.getScales(),
                                    b.add(op.getScalesRow(), row), column);
  return split(b.builder, b.loc, loaded);
}

void PackedProduct::multiply(int64_t k, ValueRange words, int64_t firstAcc) {
  constexpr size_t left = 4;
  emitSyncInstruction(b.builder, b.loc, /*isHalf=*/true,
                      a.slice(k / kOperand * left, left), words,
                      acc.slice(firstAcc, kAccElements));
}
