//===- Registers.h - Registers of a chip in vectors -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_NARROWFLOATS_REGISTERS_H
#define KVCACHE_LIB_CONVERSION_NARROWFLOATS_REGISTERS_H

#include "Elementwise.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache::narrow {

/// Builds registers and 1-D vectors of registers.
class Registers {
public:
  Registers(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  VectorType vectorOf(int64_t size, Type element) const {
    return VectorType::get(size, element);
  }
  Type intType(unsigned width) const { return builder.getIntegerType(width); }

  /// Converts a scalar or a vector to a vector whose size is a multiple of
  /// `multiple`. Additional lanes at the end are zero.
  Value pad(Value value, int64_t multiple) const {
    auto type = dyn_cast<VectorType>(value.getType());
    if (!type) {
      type = vectorOf(1, value.getType());
      value = vector::BroadcastOp::create(builder, loc, type, value);
    }
    int64_t size = llvm::alignTo(type.getDimSize(0), multiple);
    if (size == type.getDimSize(0))
      return value;
    Elementwise e(builder, loc, vectorOf(size, type.getElementType()));
    Value zeros = e.constant(e.typeOf(type.getElementType()), 0);
    return vector::InsertStridedSliceOp::create(
        builder, loc, value, zeros, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
  }

  /// Undoes `pad`: the first lanes of `value`, with the shape of `like`.
  Value unpad(Value value, Type like) const {
    auto type = dyn_cast<VectorType>(like);
    if (!type)
      return vector::ExtractOp::create(builder, loc, value, 0);
    if (type.getDimSize(0) == cast<VectorType>(value.getType()).getDimSize(0))
      return value;
    return vector::ExtractStridedSliceOp::create(
        builder, loc, value, ArrayRef<int64_t>{0}, type.getShape(),
        ArrayRef<int64_t>{1});
  }

  /// Casts a vector to elements of another width.
  Value bitcast(Value vector, Type element) const {
    auto type = cast<VectorType>(vector.getType());
    int64_t bits = type.getDimSize(0) * type.getElementTypeBitWidth();
    return vector::BitCastOp::create(
        builder, loc, vectorOf(bits / element.getIntOrFloatBitWidth(), element),
        vector);
  }

  /// Returns the elements of a vector.
  SmallVector<Value> elements(Value vector) const {
    SmallVector<Value> result;
    for (int64_t i :
         llvm::seq(cast<VectorType>(vector.getType()).getDimSize(0)))
      result.push_back(vector::ExtractOp::create(builder, loc, vector, i));
    return result;
  }
  /// Splits a vector into registers of `width` bits.
  SmallVector<Value> split(Value vector, unsigned width) const {
    return elements(bitcast(vector, intType(width)));
  }
  /// Joins registers to a vector.
  Value join(ArrayRef<Value> registers, Type element) const {
    VectorType type = vectorOf(registers.size(), registers.front().getType());
    Value joined =
        vector::FromElementsOp::create(builder, loc, type, registers);
    return bitcast(joined, element);
  }

  /// Casts a register to a vector of two elements, or back.
  Value castRegister(Value value, Type type) const {
    return LLVM::BitcastOp::create(builder, loc, type, value);
  }

  /// Selects bytes of `low` (bytes 0 to 3) and `high` (bytes 4 to 7) by the
  /// nibbles of `selector`: PTX ISA, prmt. A nibble n of 8 or more selects
  /// eight copies of the highest bit of byte n - 8.
  Value permute(Value low, Value high, Value selector) const {
    return NVVM::PermuteOp::create(builder, loc, builder.getI32Type(), low,
                                   high, selector, NVVM::PermuteMode::DEFAULT);
  }
  Value permute(Value low, Value high, uint32_t selector) const {
    return permute(low, high, constant(selector));
  }
  Value constant(uint32_t value) const {
    return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(),
                                        value);
  }

  /// The builder of the values.
  OpBuilder &builder;
  Location loc;
};

/// Whether the type is a scalar, or a fixed-size 1-D vector.
inline bool hasRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return !vector || (vector.getRank() == 1 && !vector.isScalable());
}

/// Returns the number of lanes of a scalar or of a 1-D vector.
inline int64_t getNumLanes(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getDimSize(0) : 1;
}

} // namespace mlir::kvcache::narrow

#endif // KVCACHE_LIB_CONVERSION_NARROWFLOATS_REGISTERS_H
