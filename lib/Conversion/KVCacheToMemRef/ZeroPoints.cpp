//===- ZeroPoints.cpp - Pairs of 4-bit integers with zero points ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostPairs.h"
#include "HostQuads.h"
#include "Quantization.h"
#include "kvcache/Support/EarlyValues.h"
#include "kvcache/Support/FloatBuilder.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The largest element.
static constexpr int64_t kMax = 15;
/// The smallest scale, whose reciprocal is a normal number.
static constexpr float kSmallestScale = 0x1p-126f;
static constexpr float kInfinity = std::numeric_limits<float>::infinity();

//===----------------------------------------------------------------------===//
// Pairs in bytes
//===----------------------------------------------------------------------===//

/// Bytes of a value like `like`.
static Value splat(OpBuilder &builder, Location loc, Value like,
                   int64_t number) {
  auto type = cast<VectorType>(like.getType());
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type,
                             Attribute(builder.getI8IntegerAttr(number))));
}

/// The elements in bytes, in bytes of their own.
static Value unpack(OpBuilder &builder, Location loc, Value bytes) {
  Value low = arith::AndIOp::create(builder, loc, bytes,
                                    splat(builder, loc, bytes, kMax));
  Value high = arith::ShRUIOp::create(builder, loc, bytes,
                                      splat(builder, loc, bytes, 4));
  return vector::InterleaveOp::create(builder, loc, low, high);
}

static Value pack(OpBuilder &builder, Location loc, Value elements) {
  auto pairs = vector::DeinterleaveOp::create(builder, loc, elements);
  Value high = arith::ShLIOp::create(builder, loc, pairs.getRes2(),
                                     splat(builder, loc, pairs.getRes2(), 4));
  return arith::OrIOp::create(builder, loc, pairs.getRes1(), high);
}

//===----------------------------------------------------------------------===//
// Dequantization
//===----------------------------------------------------------------------===//

Value kvcache::dequantizePairs(OpBuilder &builder, Location loc, Value bytes,
                               Value scale, Value zeroPoint,
                               int64_t granularity, Type lane) {
  FloatBuilder b(builder, loc);
  if (lane.isBF16() && QuadConverter::canConvert(bytes, 2, granularity))
    return dequantizeNibbles(b, bytes, scale, zeroPoint, granularity);
  Value elements = unpack(builder, loc, bytes);
  Value numbers = arith::UIToFPOp::create(
      builder, loc, withLane(elements.getType(), b.f32), elements);
  auto spread = [&](Value groupValues) {
    return b.spread(convertFloat(builder, loc, groupValues, b.f32), numbers,
                    granularity);
  };
  Value values = math::FmaOp::create(builder, loc, numbers, spread(scale),
                                     spread(zeroPoint));
  return convertFloat(builder, loc, values, lane);
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

/// Rounds f32 numbers to a type of scales, away from its infinities.
static Value roundFinite(const FloatBuilder &b, Value values, FloatType type) {
  float largest = getLargest(type);
  values = b.min(values, largest);
  values = b.max(values, -largest);
  return convertFloat(b.builder, b.loc, values, type);
}

/// `numbers`, but NaNs for groups with infinities or NaNs.
static Value keepFinite(const FloatBuilder &b, Value numbers,
                        Value magnitudes) {
  auto type = cast<FloatType>(getLaneType(numbers.getType()));
  auto nan =
      FloatAttr::get(type, llvm::APFloat::getQNaN(type.getFloatSemantics()));
  TypedAttr attr = nan;
  if (auto vector = dyn_cast<VectorType>(numbers.getType()))
    attr = DenseElementsAttr::get(vector, Attribute(nan));
  return b.select(arith::CmpFPredicate::OLT, magnitudes, kInfinity, numbers,
                  arith::ConstantOp::create(b.builder, b.loc, attr));
}

/// Integers in the order of floats, of which NaNs are first or last; or the
/// floats' bits of such integers.
static Value orderBits(OpBuilder &builder, Location loc, Value bits) {
  auto constant = [&](const llvm::APInt &number) -> Value {
    Type type = bits.getType();
    TypedAttr attr = builder.getIntegerAttr(getLaneType(type), number);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(builder, loc, attr);
  };
  unsigned width = getLaneType(bits.getType()).getIntOrFloatBitWidth();
  Value sign = arith::ShRSIOp::create(builder, loc, bits,
                                      constant(llvm::APInt(width, width - 1)));
  Value flipped = arith::AndIOp::create(
      builder, loc, sign, constant(llvm::APInt::getSignedMaxValue(width)));
  return arith::XOrIOp::create(builder, loc, bits, flipped);
}

/// The smallest and the largest number of each group in f32, on a CPU by
/// integers.
static std::pair<Value, Value>
reduceOrderedBits(const FloatBuilder &b, ValueRange rows, int64_t granularity) {
  OpBuilder &builder = b.builder;
  Location loc = b.loc;
  Type lane = getLaneType(rows.front().getType());
  Type integer = builder.getIntegerType(lane.getIntOrFloatBitWidth());
  SmallVector<Value> ordered;
  for (Value row : rows)
    ordered.push_back(
        orderBits(builder, loc,
                  arith::BitcastOp::create(
                      builder, loc, withLane(row.getType(), integer), row)));
  auto reduce = [&](vector::CombiningKind kind) {
    Value bits = orderBits(
        builder, loc, reduceGroups(builder, loc, ordered, granularity, kind));
    Value floats = arith::BitcastOp::create(
        builder, loc, withLane(bits.getType(), lane), bits);
    return convertFloat(builder, loc, floats, b.f32);
  };
  Value smallest = reduce(vector::CombiningKind::MINSI);
  Value largest = reduce(vector::CombiningKind::MAXSI);
  // A NaN is the smallest or the largest, by its sign.
  auto propagate = [&](Value number, Value other) {
    Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO,
                                        other, other);
    return b.select(isNaN, other, number);
  };
  largest = propagate(largest, smallest);
  return {propagate(smallest, largest), largest};
}

/// The smallest and the largest number of each group in f32; NaNs if there is
/// one.
static std::pair<Value, Value> getRange(const FloatBuilder &b, ValueRange rows,
                                        int64_t granularity, int64_t spread) {
  if (!isInGPUCode(b.builder.getInsertionBlock()->getParentOp()))
    return reduceOrderedBits(b, rows, granularity);
  return {reduceGroups(b.builder, b.loc, rows, granularity,
                       vector::CombiningKind::MINIMUMF, spread),
          reduceGroups(b.builder, b.loc, rows, granularity,
                       vector::CombiningKind::MAXIMUMF, spread)};
}

/// The bytes of a row of bf16 on a CPU: even elements are low, odd ones high.
static Value quantizeByPairs(const FloatBuilder &b, Value row, Value offsets,
                             Value factors, int64_t granularity) {
  PairConverter pairs(b);
  auto convert = [&](int64_t first) -> Value {
    Value offset = pairs.spread(offsets, first, granularity);
    Value factor = pairs.spread(factors, first, granularity);
    // Bounds that are compared at other places than here would be one of LLVM's
    // patterns, which takes it more instructions. Factors are positive numbers.
    auto round = [&](Value values) {
      Value numbers = b.mul(b.max(b.sub(values, offset), 0.0f), factor);
      return pairs.op<arith::MinSIOp>(
          roundToIntegers(b.builder, b.loc, numbers), kRoundedZero + kMax);
    };
    EvenOdd values = pairs.widen(pairs.getPairs(row, first));
    Value high = pairs.op<arith::ShLIOp>(round(values.odd), 4);
    Value bytes = pairs.op<arith::OrIOp>(round(values.even), high);
    return arith::TruncIOp::create(
        b.builder, b.loc, withLane(bytes.getType(), b.builder.getI8Type()),
        bytes);
  };
  return convertChunks(b, getNumLanes(row.getType()), PairConverter::kElements,
                       convert);
}

Quantized kvcache::quantizeToPairs(OpBuilder &builder, Location loc,
                                   ValueRange rows, int64_t granularity,
                                   FloatType scaleType, int64_t spread) {
  FloatBuilder b(builder, loc);
  auto [smallest, largest] = getRange(b, rows, granularity, spread);
  Value magnitudes = arith::MaximumFOp::create(
      b.builder, b.loc, math::AbsFOp::create(builder, loc, smallest),
      math::AbsFOp::create(builder, loc, largest).getResult());
  // Chips do not agree on the smallest of zeros of both signs: take 0.
  Value zeroPoints = roundFinite(b, b.add(smallest, 0.0f), scaleType);
  Value offsets = convertFloat(builder, loc, zeroPoints, b.f32);
  Value scales = b.div(b.sub(largest, offsets), static_cast<float>(kMax));
  scales = b.max(scales, std::max(getSmallest(scaleType), kSmallestScale));
  scales = roundFinite(b, scales, scaleType);
  Value widths = convertFloat(builder, loc, scales, b.f32);
  Value factors = b.div(b.constant(widths, 1.0f), widths);

  Quantized result{{},
                   keepFinite(b, scales, magnitudes),
                   keepFinite(b, zeroPoints, magnitudes)};
  bool hasPairs = PairConverter::canConvert(rows.front(), granularity);
  if (hasPairs)
    markEarly({offsets, factors});
  for (Value row : rows) {
    if (hasPairs) {
      result.rows.push_back(
          quantizeByPairs(b, row, offsets, factors, granularity));
      continue;
    }
    Value values = convertFloat(builder, loc, row, b.f32);
    values = b.sub(values, b.spread(offsets, values, granularity));
    values = b.mul(values, b.spread(factors, values, granularity));
    // A NaN becomes 0.
    values = b.max(values, 0.0f);
    values = b.min(values, static_cast<float>(kMax));
    result.rows.push_back(
        pack(builder, loc, roundToBytes(builder, loc, values)));
  }
  return result;
}
