//===- Elementwise.h - Arithmetic on encodings of floats  -*- C++ -*-------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_NARROWFLOATS_ELEMENTWISE_H
#define KVCACHE_LIB_CONVERSION_NARROWFLOATS_ELEMENTWISE_H

#include "kvcache/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::kvcache::narrow {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Whether the pass lowers conversions from and to the type.
inline bool isNarrow(Type type) { return hasUse(type, FormatUse::Narrow); }

/// Whether the pass lowers conversions between the type and narrow ones.
inline bool isWide(Type type) { return hasUse(type, FormatUse::Wide); }

/// Returns the float type of a scalar or of the elements of a vector, or null.
inline FloatType getFloatLane(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    type = vector.getElementType();
  return dyn_cast<FloatType>(type);
}

/// The layout of a float type with a sign: sign, exponent and mantissa, from
/// the highest bit on.
struct Format {
  explicit Format(FloatType type)
      : type(type), width(type.getWidth()),
        mantissa(type.getFPMantissaWidth() - 1),
        minExponent(llvm::APFloat::semanticsMinExponent(semantics())) {}

  const llvm::fltSemantics &semantics() const {
    return type.getFloatSemantics();
  }

  uint64_t signBit() const { return uint64_t(1) << (width - 1); }

  /// Whether some encodings are not numbers.
  bool hasNaN() const { return llvm::APFloat::semanticsHasNaN(semantics()); }

  llvm::APFloat largest() const {
    return llvm::APFloat::getLargest(semantics());
  }

  /// The exponent of all ones, which represents infinities and NaNs in IEEE
  /// formats.
  int infinityExponent() const { return 2 - minExponent; }

  /// The bits of a quiet NaN.
  uint64_t quietNaN() const {
    return llvm::APFloat::getQNaN(semantics()).bitcastToAPInt().getZExtValue();
  }

  /// The bits of `value` * 2^exponent, which must be exact in this format.
  uint64_t bits(llvm::APFloat value, int exponent = 0) const {
    bool losesInfo;
    value.convert(semantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    value = scalbn(value, exponent, llvm::APFloat::rmNearestTiesToEven);
    return value.bitcastToAPInt().getZExtValue();
  }

  /// The bits of 2^exponent.
  uint64_t powerOfTwo(int exponent) const {
    return uint64_t(exponent - minExponent + 1) << mantissa;
  }

  FloatType type;
  unsigned width;
  /// The stored bits of the mantissa, without the implicit one.
  unsigned mantissa;
  /// The exponent of the smallest normal number.
  int minExponent;
};

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Builds elementwise arithmetic on scalars, or on vectors of one shape.
class Elementwise {
public:
  /// Results have the shape of `like`.
  Elementwise(OpBuilder &builder, Location loc, Type like)
      : builder(builder), loc(loc), vector(dyn_cast<VectorType>(like)) {}

  Type typeOf(Type element) const {
    if (!vector)
      return element;
    return VectorType::get(vector.getShape(), element,
                           vector.getScalableDims());
  }
  Type intType(unsigned width) const {
    return typeOf(builder.getIntegerType(width));
  }

  Value constant(Type type, uint64_t bits) const {
    Type element = getElementTypeOrSelf(type);
    llvm::APInt value(element.getIntOrFloatBitWidth(), bits, /*isSigned=*/false,
                      /*implicitTrunc=*/true);
    TypedAttr attr;
    if (auto floatType = dyn_cast<FloatType>(element))
      attr = FloatAttr::get(
          floatType, llvm::APFloat(floatType.getFloatSemantics(), value));
    else
      attr = IntegerAttr::get(element, value);
    if (auto vectorType = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vectorType, attr);
    return arith::ConstantOp::create(builder, loc, attr);
  }

  template <typename BinaryOp> Value op(Value lhs, Value rhs) const {
    return BinaryOp::create(builder, loc, lhs, rhs);
  }
  /// Builds the op with a constant, given by its bits; ignores higher bits.
  template <typename BinaryOp> Value op(Value lhs, uint64_t rhs) const {
    return op<BinaryOp>(lhs, constant(lhs.getType(), rhs));
  }

  /// factor * value + addend, for an exact product, so that one or two
  /// operations give the same result. The factor is given by its bits.
  Value exactMultiplyAdd(Value value, uint64_t factor, Value addend) const {
    constexpr auto fusable = arith::FastMathFlags::contract;
    Value product = arith::MulFOp::create(
        builder, loc, value, constant(value.getType(), factor), fusable);
    return arith::AddFOp::create(builder, loc, product, addend, fusable);
  }

  Value compare(arith::CmpFPredicate predicate, Value lhs, uint64_t rhs) const {
    return arith::CmpFOp::create(builder, loc, predicate, lhs,
                                 constant(lhs.getType(), rhs));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, uint64_t rhs) const {
    return arith::CmpIOp::create(builder, loc, predicate, lhs,
                                 constant(lhs.getType(), rhs));
  }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }

  /// Casts to the given element type or width.
  Value bitcast(Value value, Type element) const {
    return arith::BitcastOp::create(builder, loc, typeOf(element), value);
  }
  Value toBits(Value value) const {
    Type element = getElementTypeOrSelf(value.getType());
    return bitcast(value,
                   builder.getIntegerType(element.getIntOrFloatBitWidth()));
  }
  Value extendSigned(Value value, unsigned width) const {
    return arith::ExtSIOp::create(builder, loc, intType(width), value);
  }
  Value extendUnsigned(Value value, unsigned width) const {
    return arith::ExtUIOp::create(builder, loc, intType(width), value);
  }
  Value truncate(Value value, unsigned width) const {
    return arith::TruncIOp::create(builder, loc, intType(width), value);
  }
  Value extendFloat(Value value, Type element) const {
    return arith::ExtFOp::create(builder, loc, typeOf(element), value);
  }
  /// Rounds to nearest even.
  Value truncateFloat(Value value, Type element) const {
    return arith::TruncFOp::create(builder, loc, typeOf(element), value);
  }
  /// Converts f16, bf16 or f32 to f16, bf16, f32 or f64, through f32.
  Value convertFloat(Value value, FloatType element) const {
    Type from = getElementTypeOrSelf(value.getType());
    if (from == element)
      return value;
    if (!from.isF32())
      value = extendFloat(value, builder.getF32Type());
    if (element.isF32())
      return value;
    return element.isF64() ? extendFloat(value, element)
                           : truncateFloat(value, element);
  }

private:
  OpBuilder &builder;
  Location loc;
  VectorType vector;
};

} // namespace mlir::kvcache::narrow

#endif // KVCACHE_LIB_CONVERSION_NARROWFLOATS_ELEMENTWISE_H
