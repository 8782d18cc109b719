//===- MatrixOps.h - Products of tiles --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_MATRIXOPS_H
#define KVCACHE_IR_MATRIXOPS_H

#include "kvcache/IR/MatrixPart.h"

namespace mlir::kvcache {

/// The element types, sizes and majors of a product of wgmma, which its rules
/// are about.
struct WgmmaProduct {
  Type a, b, result;
  int64_t n, k;
  Major majorA, majorB;

  static constexpr int64_t kMostColumns = 256;
  /// The step of N, of which integers have N of 8, 16, 24, 32, 48, 64 and so
  /// on: PTX ISA, "Matrix shape" of wgmma and tcgen05.
  static int64_t getColumnStep(Type element, int64_t columns) {
    return element.isInteger() && columns > 32 ? 16 : 8;
  }

  /// Checks the rules, and the parts of tiles that are multiplied.
  LogicalResult verify(Operation *op, ArrayRef<MatrixPart> parts) const;
};

} // namespace mlir::kvcache

#define GET_OP_CLASSES
#include "kvcache/IR/MatrixOps.h.inc"

#endif // KVCACHE_IR_MATRIXOPS_H
