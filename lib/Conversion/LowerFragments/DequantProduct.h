//===- DequantProduct.h - Products of stored bytes --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_DEQUANTPRODUCT_H
#define KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_DEQUANTPRODUCT_H

#include "Registers.h"

namespace mlir::kvcache {

/// Emits a product of a warp with elements of 8 bits, which become f16 in
/// registers, as `mma.sync.m16n8k16`.
///
/// `ldmatrix` gives a lane four bytes at once. If rows of the tile are columns
/// of B, these are four elements of a row: columns 2i, 2i + 1, 2i + 8 and
/// 2i + 9 of A, whose layout has them in this order. Otherwise they are two
/// elements of two rows each, and even and odd elements have instructions of
/// their own.
class DequantProduct {
public:
  DequantProduct(OpBuilder &builder, FragmentMmaOp op, ValueRange a,
                 MutableArrayRef<Value> acc);

  void emit();

private:
  void emitKMajor();
  void emitMNMajor();
  /// Loads the words of 16 rows and of up to 32 columns from one on.
  SmallVector<Value> load(int64_t row, int64_t column);
  /// Adds a product of columns of A from `k` on to the accumulator
  /// from an element on.
  void multiply(int64_t k, ValueRange words, int64_t firstAcc);

  /// The type of the stored elements.
  Type getElement() { return op.getB().getType().getElementType(); }

  IndexBuilder b;
  FragmentMmaOp op;
  ValueRange a;
  MutableArrayRef<Value> acc;
  MatrixLoader loader;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_DEQUANTPRODUCT_H
