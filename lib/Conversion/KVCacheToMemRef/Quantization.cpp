//===- Quantization.cpp - Quantize and dequantize values ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"
#include "Quotients.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
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

/// A number that f32 holds exactly.
static float toFloat(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToFloat();
}

/// The number that a group is scaled to: the largest of the quantized type.
static float getLargestQuantized(Type quantized) {
  auto type = dyn_cast<FloatType>(quantized);
  if (!type)
    return 127;
  return toFloat(APFloat::getLargest(type.getFloatSemantics()));
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
static Type getProductType(const F32Builder &b, Type scale, Type result,
                           bool hasTensorScale) {
  if (hasTensorScale)
    return b.f32;
  if (scale.getIntOrFloatBitWidth() != 8)
    return scale;
  bool holdsScale =
      result.isBF16() || (result.isF16() && isa<Float8E4M3FNType>(scale));
  if (holdsScale)
    return result;
  return b.f32;
}

/// The scales in the type in which to multiply by them.
static Value widenScales(const F32Builder &b, Value scales, Value tensorScale,
                         Type result) {
  Type product = getProductType(b, getLaneType(scales.getType()), result,
                                static_cast<bool>(tensorScale));
  scales = convertFloat(b.builder, b.loc, scales, product);
  if (tensorScale)
    scales = b.op<arith::MulFOp>(scales, b.broadcast(tensorScale, scales));
  return scales;
}

Value kvcache::dequantize(OpBuilder &builder, Location loc, Value quantized,
                          Value scale, int64_t granularity, Value tensorScale,
                          Type lane) {
  F32Builder b(builder, loc);
  Value scales = widenScales(b, scale, tensorScale, lane);
  // Integers of 8 bits are exact in every scale type.
  if (isa<IntegerType>(getLaneType(quantized.getType())))
    quantized = arith::SIToFPOp::create(
        builder, loc, withLane(quantized.getType(), b.f32), quantized);
  Value values =
      convertFloat(builder, loc, quantized, getLaneType(scales.getType()));
  Value product = arith::MulFOp::create(builder, loc, values,
                                        b.spread(scales, values, granularity));
  return convertFloat(builder, loc, product, lane);
}

/// Applies an op to a value and the scale of its tensor, in f32.
template <typename OpTy>
static Value applyTensorScale(OpBuilder &builder, Location loc, Value value,
                              Value tensorScale, Type lane) {
  F32Builder b(builder, loc);
  value = convertFloat(builder, loc, value, b.f32);
  Value result = b.op<OpTy>(value, b.broadcast(tensorScale, value));
  return convertFloat(builder, loc, result, lane);
}

Value kvcache::scaleByTensor(OpBuilder &builder, Location loc, Value value,
                             Value tensorScale, Type lane) {
  return applyTensorScale<arith::MulFOp>(builder, loc, value, tensorScale,
                                         lane);
}

Value kvcache::divideByTensor(OpBuilder &builder, Location loc, Value value,
                              Value tensorScale, Type lane) {
  return applyTensorScale<arith::DivFOp>(builder, loc, value, tensorScale,
                                         lane);
}

Value kvcache::loadDequantized(LoadOp op, const Bundle &cache,
                               const AccessIndices &indices,
                               const AccessIndices &ofScales,
                               Value tensorScale) {
  Type resultType = op.getType();
  CacheTypeInterface type = cache.getCacheType();
  int64_t lanes = getNumLanes(resultType);
  int64_t granularity = type.getGranularity();
  Value quantized = ElementAccess(cache, indices)
                        .load(op, withLane(resultType, type.getElementType()),
                              op.getNontemporal());

  Bundle scales = cache.getScales();
  auto loadScales = [&](Value element, int64_t count) {
    AccessIndices at = ofScales;
    at.element = element;
    Type scale = type.getScale();
    return ElementAccess(scales, at)
        .load(op, count > 1 ? VectorType::get(count, scale) : scale);
  };
  Value scale;
  // The first element is a multiple of the lanes, so it is 0 where more than
  // half a head is read.
  bool isHead = 2 * lanes > type.getHeadSize();
  if (granularity % lanes == 0) {
    scale = loadScales(indices.element, 1);
  } else if (lanes % granularity == 0 || isHead) {
    scale = loadScales(isHead ? cache.index(0) : indices.element,
                       llvm::divideCeil(lanes, granularity));
  } else {
    // Groups start anywhere in the lanes, but not within `step` of them.
    int64_t step = std::gcd(lanes, granularity);
    SmallVector<Value> loaded;
    for (int64_t lane = 0; lane < lanes; lane += step)
      loaded.push_back(
          loadScales(cache.add(indices.element, cache.index(lane)), 1));
    scale = vector::FromElementsOp::create(
        cache.builder, cache.loc,
        VectorType::get(lanes / step, type.getScale()), loaded);
    granularity = step;
  }
  return dequantize(cache.builder, cache.loc, quantized, scale, granularity,
                    tensorScale, getLaneType(resultType));
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

/// The largest magnitude of each group, in f32: a scalar, or a vector over
/// several. A NaN in the group makes it a NaN.
static Value getLargestMagnitudes(const F32Builder &b, Value values,
                                  int64_t granularity, int64_t spread) {
  auto vector = dyn_cast<VectorType>(values.getType());
  Value magnitudes = math::AbsFOp::create(b.builder, b.loc, values);
  SmallVector<Value> largest;
  int64_t lanes = getNumLanes(values.getType());
  for (int64_t lane = 0; lane < lanes; lane += granularity) {
    Value group = magnitudes;
    if (vector && granularity < lanes)
      group = vector::ExtractStridedSliceOp::create(
          b.builder, b.loc, magnitudes, lane,
          std::min(granularity, lanes - lane), /*strides=*/1);
    if (vector)
      group = vector::ReductionOp::create(
          b.builder, b.loc, vector::CombiningKind::MAXIMUMF, group);
    group = convertFloat(b.builder, b.loc, group, b.f32);
    if (spread > 1)
      group = gpu::SubgroupReduceOp::create(
          b.builder, b.loc, group, gpu::AllReduceOperation::MAXIMUMF,
          /*uniform=*/false, spread, /*cluster_stride=*/1);
    largest.push_back(group);
  }
  if (largest.size() == 1)
    return largest.front();
  return vector::FromElementsOp::create(
      b.builder, b.loc, VectorType::get(largest.size(), b.f32), largest);
}

/// Rounds f32 scales to the scale type: up to a power of two, or to nearest.
static Value roundScales(const F32Builder &b, Value scales, FloatType type) {
  if (!isa<Float8E8M0FNUType>(type))
    return convertFloat(b.builder, b.loc, scales, type);
  auto upward = arith::RoundingModeAttr::get(b.builder.getContext(),
                                             arith::RoundingMode::upward);
  return arith::TruncFOp::create(b.builder, b.loc,
                                 withLane(scales.getType(), type), scales,
                                 upward, /*fastmath=*/nullptr);
}

/// Scales rounded up to powers of two, from that of 1e-4 to 2^126, so that
/// their reciprocals are normal numbers; NaN where `largest` is not finite.
static Value getPowersOfTwo(const F32Builder &b, Value scales, Value largest) {
  scales = b.op<arith::MaxNumFOp>(scales, 1e-4f);
  scales = b.op<arith::MinNumFOp>(scales, 0x1p126f);
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
  bits = b.op<arith::AddIOp>(bits, constant(fraction));
  bits = b.op<arith::AndIOp>(bits, constant(~fraction));
  Value powers =
      arith::BitcastOp::create(builder, b.loc, scales.getType(), bits);
  Value nan = b.constant(scales, APFloat::getQNaN(APFloat::IEEEsingle()));
  return b.select(arith::CmpFPredicate::OLT, largest,
                  std::numeric_limits<float>::infinity(), powers, nan);
}

/// Scales, but 1 for groups of zeros.
static Value replaceZeros(const F32Builder &b, Value scales, Value largest) {
  return b.select(arith::CmpFPredicate::OEQ, largest, 0.0f,
                  b.constant(scales, 1.0f), scales);
}

/// The scale of each group, from the largest magnitudes: by a division, or as
/// those of 16 bits are divided without.
static Value getScales(const F32Builder &b, Value largest,
                       const QuantizeOptions &options, Type quantizedType,
                       FloatType scaleType, bool divides) {
  Value tensorScale = options.tensorScale;
  float limit = getLargestQuantized(quantizedType);
  Value scales = divides ? b.op<arith::DivFOp>(largest, limit)
                         : divideMagnitudes(b, largest, limit);
  if (tensorScale)
    scales = b.op<arith::DivFOp>(scales, b.broadcast(tensorScale, scales));
  if (options.powerOfTwo)
    return roundScales(b, getPowersOfTwo(b, scales, largest), scaleType);
  // Magnitudes of 16 bits are large enough to stay numbers of f32.
  if (!divides && !tensorScale && scaleType.isF32())
    return replaceZeros(b, scales, largest);
  // Within the numbers of the scale type: neither 0 nor infinity. Conversion to
  // types of 8 bits saturates by itself, at the smallest number of f8E8M0FNU.
  const llvm::fltSemantics &semantics = scaleType.getFloatSemantics();
  if (!isa<Float8E8M0FNUType>(scaleType))
    scales = b.op<arith::MaxNumFOp>(scales,
                                    toFloat(APFloat::getSmallest(semantics)));
  bool mayOverflow = tensorScale && scaleType.getWidth() > 8;
  if (scaleType.isF16() || mayOverflow)
    scales =
        b.op<arith::MinNumFOp>(scales, toFloat(APFloat::getLargest(semantics)));
  scales = replaceZeros(b, scales, largest);
  Value nan = b.constant(scales, APFloat::getQNaN(APFloat::IEEEsingle()));
  scales = b.select(arith::CmpFPredicate::OLT, largest,
                    std::numeric_limits<float>::infinity(), scales, nan);
  return roundScales(b, scales, scaleType);
}

/// Rounds f32 numbers to nearest even integers within 127 of 0; NaNs to
/// -127.
static Value roundToInt8(const F32Builder &b, Value values) {
  values = b.op<arith::MaxNumFOp>(values, -127.0f);
  values = b.op<arith::MinNumFOp>(values, 127.0f);
  // The last place of this sum is worth 1, and its low bits are the integer in
  // two's complement.
  constexpr float shifter = 0x1.8p23f;
  Value sum = b.op<arith::AddFOp>(values, shifter);
  OpBuilder &builder = b.builder;
  Value bits = arith::BitcastOp::create(
      builder, b.loc, withLane(sum.getType(), builder.getI32Type()), sum);
  return arith::TruncIOp::create(
      builder, b.loc, withLane(sum.getType(), builder.getI8Type()), bits);
}

Quantized kvcache::quantize(OpBuilder &builder, Location loc, Value value,
                            const QuantizeOptions &options, Type quantizedType,
                            Type scaleType) {
  F32Builder b(builder, loc);
  int64_t granularity = options.granularity;
  Value tensorScale = options.tensorScale;
  bool divides = !avoidsDivisions(builder, value);
  if (divides)
    value = convertFloat(builder, loc, value, b.f32);
  Value largest = getLargestMagnitudes(b, value, granularity, options.spread);
  Value scales = getScales(b, largest, options, quantizedType,
                           cast<FloatType>(scaleType), divides);

  Value divisors = convertFloat(builder, loc, scales, b.f32);
  if (tensorScale) {
    divisors =
        b.op<arith::MulFOp>(divisors, b.broadcast(tensorScale, divisors));
    divisors = b.select(arith::CmpFPredicate::OEQ, divisors, 0.0f,
                        b.constant(divisors, 1.0f), divisors);
  }
  // The reciprocal of a power of two is exact. The scale of a tensor may be any
  // number.
  Value quotients;
  if (options.powerOfTwo && !tensorScale) {
    Value factors = b.op<arith::DivFOp>(b.constant(divisors, 1.0f), divisors);
    quotients = b.op<arith::MulFOp>(convertFloat(builder, loc, value, b.f32),
                                    b.spread(factors, value, granularity));
  } else if (divides || tensorScale) {
    quotients = b.op<arith::DivFOp>(convertFloat(builder, loc, value, b.f32),
                                    b.spread(divisors, value, granularity));
  } else {
    quotients = divideByScales(b, value, divisors, granularity);
  }
  Value quantized = isa<IntegerType>(quantizedType)
                        ? roundToInt8(b, quotients)
                        : convertFloat(builder, loc, quotients, quantizedType);
  return {quantized, scales};
}
