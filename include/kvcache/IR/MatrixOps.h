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

  /// Checks the rules, and the parts of tiles that are multiplied.
  LogicalResult verify(Operation *op, ArrayRef<MatrixPart> parts) const;
};

} // namespace mlir::kvcache

#define GET_OP_CLASSES
#include "kvcache/IR/MatrixOps.h.inc"

#endif // KVCACHE_IR_MATRIXOPS_H
