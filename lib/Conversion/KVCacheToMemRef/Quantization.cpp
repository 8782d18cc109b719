//===- Quantization.cpp - Quantize and dequantize values ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"
#include "HostPairs.h"
#include "HostQuads.h"
#include "Quotients.h"
#include "kvcache/Support/Powers.h"
#include "kvcache/Target/Chip.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;
using llvm::APFloat;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value kvcache::convertFloat(OpBuilder &builder, Location loc, Value value,
                            Type lane) {
  Type from = getLaneType(value.getType());
  Type type = withLane(value.getType(), lane);
  if (from == lane)
    return value;
  value = makeOpaque(builder, loc, value);
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = lane.getIntOrFloatBitWidth();
  if (fromBits < toBits)
    return arith::ExtFOp::create(builder, loc, type, value);
  if (fromBits > toBits)
    return arith::TruncFOp::create(builder, loc, type, value);
  // Types of one width convert through f32, which holds both exactly.
  value = arith::ExtFOp::create(builder, loc,
                                withLane(type, builder.getF32Type()), value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

// Integers of 8 bits are exact in every float type of 16 bits.
Value kvcache::convertElements(OpBuilder &builder, Location loc, Value value,
                               Type lane) {
  if (isa<IntegerType>(getLaneType(value.getType())) && lane.isFloat())
    value = arith::SIToFPOp::create(
        builder, loc, withLane(value.getType(), builder.getF32Type()), value);
  return convertFloat(builder, loc, value, lane);
}

/// A number that f32 holds exactly.
static float toFloat(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToFloat();
}

float kvcache::getSmallest(FloatType type) {
  return toFloat(APFloat::getSmallest(type.getFloatSemantics()));
}

float kvcache::getLargest(FloatType type) {
  return toFloat(APFloat::getLargest(type.getFloatSemantics()));
}

/// The number that a group is scaled to: the largest of the quantized type.
static float getLargestQuantized(Type quantized) {
  auto type = dyn_cast<FloatType>(quantized);
  return type ? getLargest(type) : 127;
}

//===----------------------------------------------------------------------===//
// Dequantization
//===----------------------------------------------------------------------===//

/// The type in which to multiply by scales: f32 for those of 8 bits and with a
/// scale of the tensor, else their own.
///
/// A product of 8-bit values and scales is exact in f32, so that rounding it to
/// the result is the only rounding. Where the result type holds both factors, a
/// product in that type is the same number, for fewer instructions.
static Type getProductType(const FloatBuilder &b, Type scale, Type result,
                           bool hasTensorScale) {
  if (hasTensorScale)
    return b.f32;
  if (scale.getIntOrFloatBitWidth() != 8)
    return scale;
  bool holdsScale =
      result.isBF16() ||
      (result.isF16() &&
       APFloat::isRepresentableBy(cast<FloatType>(scale).getFloatSemantics(),
                                  APFloat::IEEEhalf()));
  if (holdsScale)
    return result;
  return b.f32;
}

/// The scales in the type in which to multiply by them.
static Value widenScales(const FloatBuilder &b, Value scales, Value tensorScale,
                         Type result) {
  Type product = getProductType(b, getLaneType(scales.getType()), result,
                                static_cast<bool>(tensorScale));
  scales = convertFloat(b.builder, b.loc, scales, product);
  if (tensorScale)
    scales = b.mul(scales, b.broadcast(tensorScale, scales));
  return scales;
}

Value kvcache::dequantize(OpBuilder &builder, Location loc, Value quantized,
                          Value scale, int64_t granularity, Value tensorScale,
                          Type lane) {
  FloatBuilder b(builder, loc);
  Value scales = widenScales(b, scale, tensorScale, lane);
  if (lane.isBF16() && getLaneType(scales.getType()).isF32() &&
      haveQuads(getLaneType(quantized.getType())) &&
      QuadConverter::canConvert(quantized, /*perByte=*/1, granularity))
    return dequantizeQuads(b, quantized, scales, granularity);
  Value values =
      convertElements(builder, loc, quantized, getLaneType(scales.getType()));
  Value product = arith::MulFOp::create(builder, loc, values,
                                        b.spread(scales, values, granularity));
  return convertFloat(builder, loc, product, lane);
}

/// Rounds f32 numbers to nearest even integers within 127 of 0; NaNs to
/// -127.
static Value roundToInt8(const FloatBuilder &b, Value values) {
  values = b.max(values, -127.0f);
  values = b.min(values, 127.0f);
  return roundToBytes(b.builder, b.loc, values);
}

/// Applies an op to a value and the scale of its tensor, in f32.
template <typename OpTy>
static Value applyTensorScale(OpBuilder &builder, Location loc, Value value,
                              Value tensorScale, Type lane) {
  FloatBuilder b(builder, loc);
  value = convertElements(builder, loc, value, b.f32);
  Value result =
      OpTy::create(b.builder, b.loc, value, b.broadcast(tensorScale, value));
  return convertFloat(builder, loc, result, lane);
}

Value kvcache::scaleByTensor(OpBuilder &builder, Location loc, Value value,
                             Value tensorScale, Type lane) {
  return applyTensorScale<arith::MulFOp>(builder, loc, value, tensorScale,
                                         lane);
}

Value kvcache::divideByTensor(OpBuilder &builder, Location loc, Value value,
                              Value tensorScale, Type lane) {
  if (isa<IntegerType>(lane))
    return roundToInt8(FloatBuilder(builder, loc),
                       applyTensorScale<arith::DivFOp>(builder, loc, value,
                                                       tensorScale,
                                                       builder.getF32Type()));
  return applyTensorScale<arith::DivFOp>(builder, loc, value, tensorScale,
                                         lane);
}

namespace {

/// The scales of the lanes of a load, each for `granularity` of them, and their
/// zero points, or null.
struct LoadedScales {
  Value scales, zeroPoints;
  int64_t granularity;
};

} // namespace

/// Loads the scales of the groups that start every `step` lanes, which are not
/// next to each other.
static LoadedScales loadEachScale(LoadOp op, const Bundle &scales,
                                  AccessIndices at, int64_t step) {
  CacheTypeInterface type = op.getCache().getType();
  int64_t count = getNumLanes(op.getType()) / step;
  Value first = at.element;
  SmallVector<Value> loaded, zeroPoints;
  for (int64_t group = 0; group < count; ++group) {
    at.element = scales.add(first, scales.index(group * step));
    ElementAccess access(scales, at);
    loaded.push_back(access.load(op, type.getScale()));
    if (type.hasZeroPoints())
      zeroPoints.push_back(access.getZeroPoints().load(op, type.getScale()));
  }
  auto join = [&](ValueRange values) -> Value {
    if (values.empty())
      return {};
    return vector::FromElementsOp::create(
        scales.builder, scales.loc, VectorType::get(count, type.getScale()),
        values);
  };
  return {join(loaded), join(zeroPoints), step};
}

static LoadedScales loadScales(LoadOp op, const Bundle &scales,
                               AccessIndices at) {
  CacheTypeInterface type = op.getCache().getType();
  int64_t lanes = getNumLanes(op.getType());
  int64_t granularity = type.getGranularity();
  // The first element is a multiple of the lanes, so it is 0 where more than
  // half a head is read.
  bool isHead = 2 * lanes > type.getHeadSize();
  bool isOne = granularity % lanes == 0;
  // Groups start anywhere in the lanes, but not within `step` of them.
  if (!isOne && lanes % granularity != 0 && !isHead)
    return loadEachScale(op, scales, at, std::gcd(lanes, granularity));
  if (!isOne && isHead)
    at.element = scales.index(0);
  int64_t count = llvm::divideCeil(lanes, granularity);
  Type scale = type.getScale();
  if (count > 1)
    scale = VectorType::get(count, scale);
  ElementAccess access(scales, at);
  LoadedScales loaded{access.load(op, scale), Value(), granularity};
  if (type.hasZeroPoints())
    loaded.zeroPoints = access.getZeroPoints().load(op, scale);
  return loaded;
}

Value kvcache::loadDequantized(LoadOp op, const Bundle &cache,
                               const AccessIndices &indices,
                               const AccessIndices &scaleIndices,
                               Value tensorScale) {
  Type lane = getLaneType(op.getType());
  CacheTypeInterface type = cache.getCacheType();
  ElementAccess elements(cache, indices);
  Value quantized =
      type.hasZeroPoints()
          ? elements.loadStored(op, getNumLanes(op.getType()),
                                op.getNontemporal())
          : elements.load(op, withLane(op.getType(), type.getElementType()),
                          op.getNontemporal());
  LoadedScales loaded = loadScales(op, cache.getScales(), scaleIndices);
  if (type.hasZeroPoints())
    return dequantizePairs(cache.builder, cache.loc, quantized, loaded.scales,
                           loaded.zeroPoints, loaded.granularity, lane);
  return dequantize(cache.builder, cache.loc, quantized, loaded.scales,
                    loaded.granularity, tensorScale, lane);
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

/// The bits of the magnitude of a float, which order as magnitudes do. Those of
/// NaNs are above all others.
static Value getMagnitudeBits(const FloatBuilder &b, Value value) {
  OpBuilder &builder = b.builder;
  unsigned width = getLaneType(value.getType()).getIntOrFloatBitWidth();
  Type type = withLane(value.getType(), builder.getIntegerType(width));
  Value bits = arith::BitcastOp::create(builder, b.loc, type, value);
  TypedAttr mask = builder.getIntegerAttr(
      builder.getIntegerType(width), llvm::APInt::getSignedMaxValue(width));
  if (auto vector = dyn_cast<VectorType>(type))
    mask = DenseElementsAttr::get(vector, Attribute(mask));
  return arith::AndIOp::create(builder, b.loc, bits,
                               arith::ConstantOp::create(builder, b.loc, mask));
}

/// The largest magnitude of each group of rows on a CPU, which compares
/// integers in fewer instructions than floats that may be NaNs.
static Value reduceMagnitudeBits(const FloatBuilder &b, ValueRange rows,
                                 int64_t granularity) {
  SmallVector<Value> bits;
  for (Value row : rows)
    bits.push_back(getMagnitudeBits(b, row));
  Value largest = reduceGroups(b.builder, b.loc, bits, granularity,
                               vector::CombiningKind::MAXUI);
  Type lane = getLaneType(rows.front().getType());
  largest = arith::BitcastOp::create(
      b.builder, b.loc, withLane(largest.getType(), lane), largest);
  return convertFloat(b.builder, b.loc, largest, b.f32);
}

/// The largest magnitude of each group of rows.
static Value getLargestMagnitudes(const FloatBuilder &b, ValueRange rows,
                                  const QuantizeOptions &options) {
  if (!isInGPUCode(b.builder.getInsertionBlock()->getParentOp()))
    return reduceMagnitudeBits(b, rows, options.granularity);
  SmallVector<Value> magnitudes;
  for (Value row : rows)
    magnitudes.push_back(b.abs(row));
  return reduceGroups(b.builder, b.loc, magnitudes, options.granularity,
                      vector::CombiningKind::MAXIMUMF, options.spread);
}

/// Rounds f32 scales to the scale type: up to a power of two, or to nearest.
static Value roundScales(const FloatBuilder &b, Value scales, FloatType type) {
  if (!isa<Float8E8M0FNUType>(type))
    return convertFloat(b.builder, b.loc, scales, type);
  auto upward = arith::RoundingModeAttr::get(b.builder.getContext(),
                                             arith::RoundingMode::upward);
  return arith::TruncFOp::create(b.builder, b.loc,
                                 withLane(scales.getType(), type), scales,
                                 upward, /*fastmath=*/nullptr);
}

/// Scales rounded up to powers of two, from that of `least` to 2^126, so that
/// their reciprocals are normal numbers; NaN where `largest` is not finite.
static Value getPowersOfTwo(const FloatBuilder &b, Value scales, Value largest,
                            float least) {
  scales = b.max(scales, least);
  scales = b.min(scales, 0x1p126f);
  OpBuilder &builder = b.builder;
  Type integers = withLane(scales.getType(), builder.getI32Type());
  auto constant = [&](int32_t bits) -> Value {
    TypedAttr attr = builder.getI32IntegerAttr(bits);
    if (auto vector = dyn_cast<VectorType>(integers))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(builder, b.loc, attr);
  };
  // A carry out of the fraction raises the exponent.
  constexpr int32_t fraction = 0x007fffff;
  Value bits = arith::BitcastOp::create(builder, b.loc, integers, scales);
  bits = arith::AddIOp::create(b.builder, b.loc, bits, constant(fraction));
  bits = arith::AndIOp::create(b.builder, b.loc, bits, constant(~fraction));
  Value powers =
      arith::BitcastOp::create(builder, b.loc, scales.getType(), bits);
  Value nan =
      b.constant(scales.getType(), APFloat::getQNaN(APFloat::IEEEsingle()));
  return b.select(arith::CmpFPredicate::OLT, largest,
                  std::numeric_limits<float>::infinity(), powers, nan);
}

/// Scales, but 1 for groups of zeros.
static Value replaceZeros(const FloatBuilder &b, Value scales, Value largest) {
  return b.select(arith::CmpFPredicate::OEQ, largest, 0.0f,
                  b.constant(scales, 1.0f), scales);
}

/// The scale of each group, from the largest magnitudes: by a division, or as
/// those of 16 bits are divided without.
static Value getScales(const FloatBuilder &b, Value largest,
                       const QuantizeOptions &options, Type quantizedType,
                       FloatType scaleType, bool divides) {
  Value tensorScale = options.tensorScale;
  float limit = getLargestQuantized(quantizedType);
  Value scales =
      divides ? b.div(largest, limit) : divideMagnitudes(b, largest, limit);
  if (tensorScale)
    scales = b.div(scales, b.broadcast(tensorScale, scales));
  if (options.powerOfTwo) {
    float least = options.leastAmax ? 1e-4f / limit : 1e-4f;
    return roundScales(b, getPowersOfTwo(b, scales, largest, least), scaleType);
  }
  // Magnitudes of 16 bits are large enough to stay numbers of f32.
  if (!divides && !tensorScale && scaleType.isF32())
    return replaceZeros(b, scales, largest);
  // Within the numbers of the scale type: neither 0 nor infinity. Conversion to
  // types of 8 bits saturates by itself, at the smallest number of f8E8M0FNU.
  if (!isa<Float8E8M0FNUType>(scaleType))
    scales = b.max(scales, getSmallest(scaleType));
  bool mayOverflow = tensorScale && scaleType.getWidth() > 8;
  if (scaleType.isF16() || mayOverflow)
    scales = b.min(scales, getLargest(scaleType));
  scales = replaceZeros(b, scales, largest);
  Value nan =
      b.constant(scales.getType(), APFloat::getQNaN(APFloat::IEEEsingle()));
  scales = b.select(arith::CmpFPredicate::OLT, largest,
                    std::numeric_limits<float>::infinity(), scales, nan);
  return roundScales(b, scales, scaleType);
}

/// The last place of a sum with this number is worth 1, and its low bits are
/// the integer in two's complement.
static constexpr float kShifter = 0x1.8p23f;

Value kvcache::roundToFloats(const FloatBuilder &b, Value values) {
  return b.add(b.add(values, kShifter), -kShifter);
}

Value kvcache::joinNibbles(const FloatBuilder &b, ArrayRef<Value> numbers) {
  // One instruction where a CPU has it, and exact in two as well.
  auto flags = arith::FastMathFlags::contract;
  Value sum = b.add(numbers.back(), kShifter);
  for (Value number : llvm::reverse(numbers.drop_back())) {
    Value products = arith::MulFOp::create(b.builder, b.loc, sum,
                                           b.constant(sum, 16.0f), flags);
    Value shifted = arith::AddFOp::create(
        b.builder, b.loc, products, b.constant(sum, -15 * kShifter), flags);
    sum = b.add(number, shifted);
  }
  return sum;
}

Value kvcache::roundToIntegers(OpBuilder &builder, Location loc, Value values) {
  FloatBuilder b(builder, loc);
  Value sum = b.add(values, kShifter);
  return arith::BitcastOp::create(
      builder, loc, withLane(sum.getType(), builder.getI32Type()), sum);
}

Value kvcache::roundToBytes(OpBuilder &builder, Location loc, Value values) {
  return arith::TruncIOp::create(
      builder, loc, withLane(values.getType(), builder.getI8Type()),
      roundToIntegers(builder, loc, values));
}

/// Computes the divisors of the values of groups.
static Value getDivisors(const FloatBuilder &b, Value scales,
                         Value tensorScale) {
  Value divisors = convertFloat(b.builder, b.loc, scales, b.f32);
  if (!tensorScale)
    return divisors;
  divisors = b.mul(divisors, b.broadcast(tensorScale, divisors));
  return b.select(arith::CmpFPredicate::OEQ, divisors, 0.0f,
                  b.constant(divisors, 1.0f), divisors);
}

/// Values divided by the divisors of their groups, by a division or without.
static Value getQuotients(const FloatBuilder &b, Value value, Value divisors,
                          const QuantizeOptions &options, bool divides) {
  OpBuilder &builder = b.builder;
  int64_t granularity = options.granularity;
  // The reciprocal of a power of two is exact. The scale of a tensor may be any
  // number.
  if (options.powerOfTwo && !options.tensorScale) {
    Value factors = b.div(b.constant(divisors, 1.0f), divisors);
    return b.mul(convertFloat(builder, b.loc, value, b.f32),
                 b.spread(factors, value, granularity));
  }
  if (divides)
    return b.div(convertFloat(builder, b.loc, value, b.f32),
                 b.spread(divisors, value, granularity));
  return divideByScales(b, value, divisors, granularity,
                        /*areBounded=*/!options.tensorScale);
}

/// Whether values are quantized by pairs, divided by their own scales.
static bool canQuantizePairs(Value values, const QuantizeOptions &options,
                             Type quantizedType) {
  return quantizedType.getIntOrFloatBitWidth() == 8 && !options.powerOfTwo &&
         !options.tensorScale &&
         PairConverter::canConvert(values, options.granularity);
}

Quantized kvcache::quantize(OpBuilder &builder, Location loc, ValueRange rows,
                            const QuantizeOptions &options, Type quantizedType,
                            Type scaleType) {
  FloatBuilder b(builder, loc);
  bool divides = !avoidsDivisions(rows.front());
  SmallVector<Value> values(rows);
  if (divides)
    for (Value &value : values)
      value = convertFloat(builder, loc, value, b.f32);
  Value largest = getLargestMagnitudes(b, values, options);
  Value scales = getScales(b, largest, options, quantizedType,
                           cast<FloatType>(scaleType), divides);
  Value divisors = getDivisors(b, scales, options.tensorScale);
  Quantized result{{}, scales, {}};
  if (canQuantizePairs(values.front(), options, quantizedType)) {
    // Scales of f32 are the largest magnitudes divided, except for a few bits.
    // But 2^-133, the smallest of bf16, leaves one bit to those of f8E5M2.
    bool areBounded = scaleType.isF32() && !isa<Float8E5M2Type>(quantizedType);
    result.rows = quantizePairs(b, values, divisors, options.granularity,
                                quantizedType, areBounded);
    return result;
  }
  for (Value value : values) {
    Value quotients = getQuotients(b, value, divisors, options, divides);
    result.rows.push_back(
        isa<IntegerType>(quantizedType)
            ? roundToInt8(b, quotients)
            : convertFloat(builder, loc, quotients, quantizedType));
  }
  return result;
}
