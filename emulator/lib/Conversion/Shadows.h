//===- Shadows.h - Shadows of values ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_SHADOWS_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_SHADOWS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// The shadow of a value that may depend on unwritten bytes.
struct Shadow {
  /// Integers of the value's shape: the bits that are poisoned.
  Value bits;
  /// Where the poison comes from, as i32. It has a meaning only where a bit is
  /// set.
  Value origin;

  explicit operator bool() const { return static_cast<bool>(bits); }
};

/// Builds computations on shadows before an op, or after it.
class ShadowBuilder {
public:
  explicit ShadowBuilder(Operation *op) : builder(op), loc(op->getLoc()) {}

  /// Builds after an op, with its location.
  static ShadowBuilder after(Operation *op) {
    ShadowBuilder b(op);
    b.builder.setInsertionPointAfter(op);
    return b;
  }

  /// The type of the shadow of a value; null if values of this type have none.
  static Type getType(Type type);
  /// Whether a value is in memory just the bytes of its shadow, whose type it
  /// is, and they are as few as `KVCachePoisonBytes`.
  static bool hasPlainBytes(Type type, const DataLayout &layout);
  static bool hasShadow(Value value) { return bool(getType(value.getType())); }

  template <typename OpTy, typename... Args> Value create(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...);
  }

  Value zero(Type type) { return create<LLVM::ZeroOp>(type); }
  Value isNotZero(Value integers);
  Value bitcast(Type type, Value bits);
  /// An integer with the bits of a scalar or a vector.
  Value toInteger(Value bits);
  /// Whether any bit is set.
  Value any(Value bits);
  /// All bits of the type if a condition is true, or none.
  Value fill(Type type, Value condition);
  /// All bits of each of `count` parts of `type` if a bit of that part of
  /// `bits` is set.
  Value fillParts(Type type, Value bits, unsigned count);

  /// The origin of either of two shadows, one of which may be null.
  Value mixOrigins(Shadow first, Shadow second);
  /// The number of the origin if a bit is set, or 0.
  Value getOriginIfAny(Shadow shadow);

  OpBuilder builder;
  Location loc;
};

/// The shadow of the result of an op that has no effects, from those of its
/// operands: null for one that is never poisoned, and at least one is not.
Shadow computeShadow(Operation *op, ArrayRef<Shadow> operands);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_SHADOWS_H
