//===- DenseOperands.h - Arrays that are accessed by vectors ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_DENSEOPERANDS_H
#define KVCACHE_IR_DENSEOPERANDS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace mlir::kvcache {

/// An operand with the name that its op gives it.
struct DenseOperand {
  StringRef name;
  Value value;
};

/// Returns the dense operands of an op on whole caches whose rows kernels
/// access by vectors; none of another op.
SmallVector<DenseOperand> getVectorOperands(Operation *op);

/// Returns the bytes of which addresses of the rows of such an operand are
/// multiples on a GPU, `kPromisedAlignment` or less.
int64_t getRowAlignment(MemRefType type);

} // namespace mlir::kvcache

#endif // KVCACHE_IR_DENSEOPERANDS_H
