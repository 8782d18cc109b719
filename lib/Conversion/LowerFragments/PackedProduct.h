//===- PackedProduct.h - Products of elements of 4 bits ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_PACKEDPRODUCT_H
#define KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_PACKEDPRODUCT_H

#include "Registers.h"

#include <array>

namespace mlir::kvcache {

/// Emits a product of a warp with elements of 4 bits, which become f16 in
/// registers, times their scales if there are any, as `mma.sync.m16n8k16`.
///
/// `ldmatrix` gives a lane a word of eight elements: of a row if rows of the
/// tile are columns of B, otherwise four of each of two rows. Elements 16 bits
/// apart are a word of B, so a word gives four of them. All elements of a row
/// that a lane gets at once are of one group.
class PackedProduct {
public:
  PackedProduct(OpBuilder &builder, FragmentMmaOp op, ValueRange a,
                MutableArrayRef<Value> acc);

  void emit();

private:
  /// Rows of an operand, elements of a row that are loaded at once and those of
  /// a pair of groups, and elements of an instruction's D.
  static constexpr int64_t kOperand = 16, kLoaded = 64, kPair = 32,
                           kAccElements = 4;

  void emitKMajor();
  void emitMNMajor();
  /// Loads the words of 16 rows and of up to 64 elements from one on.
  SmallVector<Value> load(int64_t row, int64_t element);
  /// Widens a word of elements, the halves of which have the scales of a pair
  /// of groups in these.
  std::array<Value, 4> widen(Value word, ArrayRef<Value> first,
                             ArrayRef<Value> second, int64_t pair);
  /// Loads the scales that a lane needs of a row of the part: one of each pair
  /// of groups.
  SmallVector<Value> loadScales(Value row, Value numberInPair);
  /// Adds the product of a word of A and two of B to the accumulator from an
  /// element on.
  void multiply(int64_t k, ValueRange words, int64_t firstAcc);

  IndexBuilder b;
  FragmentMmaOp op;
  ValueRange a;
  MutableArrayRef<Value> acc;
  Value lane;
  MatrixLoader loader;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_PACKEDPRODUCT_H
