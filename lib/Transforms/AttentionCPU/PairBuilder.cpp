//===- PairBuilder.cpp - Pairs of bf16 in 32 bits -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairBuilder.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

constexpr uint32_t kHalfBits = 16, kHighBits = 0xffff0000;
/// Half of the last bit of a bf16, in an f32.
constexpr uint32_t kRounding = 0x8000;
/// The exponents of the halves: all ones in an infinity or a NaN.
constexpr uint32_t kLowExponent = 0x7f80, kHighExponent = 0x7f800000;

Value PairBuilder::constant(Type type, uint32_t bits) const {
  return createScalarOrSplatConstant(frame.builder, frame.loc, type,
                                     APInt(32, bits));
}

Value PairBuilder::getBits(Value floats) const {
  Type type = withLane(floats.getType(), frame.builder.getI32Type());
  return arith::BitcastOp::create(frame.builder, frame.loc, type, floats);
}

Value PairBuilder::getFloats(Value bits) const {
  Type type = withLane(bits.getType(), frame.builder.getF32Type());
  return arith::BitcastOp::create(frame.builder, frame.loc, type, bits);
}

Value PairBuilder::getElements(Value pairs) const {
  int64_t count = cast<VectorType>(pairs.getType()).getNumElements();
  auto type = VectorType::get(2 * count, frame.builder.getBF16Type());
  return vector::BitCastOp::create(frame.builder, frame.loc, type, pairs);
}

Value PairBuilder::joinElements(Value floats) const {
  OpBuilder &builder = frame.builder;
  auto type = cast<VectorType>(floats.getType());
  Value bits = getBits(floats);
  bits = arith::ShRUIOp::create(builder, frame.loc, bits,
                                constant(bits.getType(), kHalfBits));
  bits = arith::TruncIOp::create(builder, frame.loc,
                                 type.clone(builder.getI16Type()), bits);
  auto pairs = VectorType::get(type.getNumElements() / 2, builder.getI32Type());
  return vector::BitCastOp::create(builder, frame.loc, pairs, bits);
}

Value PairBuilder::getRoundedBits(Value floats) const {
  Value bits = getBits(floats);
  return arith::AddIOp::create(frame.builder, frame.loc, bits,
                               constant(bits.getType(), kRounding));
}

Value PairBuilder::roundElements(Value floats) const {
  return joinElements(getFloats(getRoundedBits(floats)));
}

Value PairBuilder::joinHighHalves(Value low, Value high) const {
  low = arith::ShRUIOp::create(frame.builder, frame.loc, low,
                               constant(low.getType(), kHalfBits));
  high = arith::AndIOp::create(frame.builder, frame.loc, high,
                               constant(high.getType(), kHighBits));
  return arith::OrIOp::create(frame.builder, frame.loc, low, high);
}

Value PairBuilder::join(Value low, Value high) const {
  return joinHighHalves(getBits(low), getBits(high));
}

Value PairBuilder::round(Value low, Value high) const {
  return joinHighHalves(getRoundedBits(low), getRoundedBits(high));
}

Value PairBuilder::getLow(Value pair) const {
  return getFloats(arith::ShLIOp::create(frame.builder, frame.loc, pair,
                                         constant(pair.getType(), kHalfBits)));
}

Value PairBuilder::getHigh(Value pair) const {
  return getFloats(arith::AndIOp::create(frame.builder, frame.loc, pair,
                                         constant(pair.getType(), kHighBits)));
}

Value PairBuilder::getNonFinite(Value pair) const {
  OpBuilder &builder = frame.builder;
  Type type = pair.getType();
  auto getHalf = [&](uint32_t exponent, uint32_t half) -> Value {
    Value bits = arith::AndIOp::create(builder, frame.loc, pair,
                                       constant(type, exponent));
    Value isNonFinite =
        arith::CmpIOp::create(builder, frame.loc, arith::CmpIPredicate::eq,
                              bits, constant(type, exponent));
    Value own =
        arith::AndIOp::create(builder, frame.loc, pair, constant(type, half));
    return arith::SelectOp::create(builder, frame.loc, isNonFinite, own,
                                   constant(type, 0));
  };
  return arith::OrIOp::create(builder, frame.loc,
                              getHalf(kLowExponent, ~kHighBits),
                              getHalf(kHighExponent, kHighBits));
}
