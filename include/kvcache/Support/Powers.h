//===- Powers.h - Constants of f8E8M0FNU ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_POWERS_H
#define KVCACHE_SUPPORT_POWERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::kvcache {

/// Returns a copy of a value or vector of f8E8M0FNU that MLIR does not fold,
/// and other values as they are. MLIR 22 folds the extension of a NaN of this
/// type to infinity (llvm/llvm-project#214919).
inline Value makeOpaque(OpBuilder &builder, Location loc, Value value) {
  if (!isa<Float8E8M0FNUType>(getElementTypeOrSelf(value.getType())))
    return value;
  Type bits = builder.getI8Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    bits = vector.clone(bits);
  // The cast goes away when kvcache-floats-as-bits makes its types equal.
  return UnrealizedConversionCastOp::create(
             builder, loc, value.getType(),
             arith::BitcastOp::create(builder, loc, bits, value).getResult())
      .getResult(0);
}

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_POWERS_H
