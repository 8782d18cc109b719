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

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

/// The bits of floats as unsigned integers in their order, NaNs first or last;
/// or with `areOrdered` the bits of the floats from such integers.
static Value orderBits(OpBuilder &builder, Location loc, Value bits,
                       bool areOrdered = false) {
  Type type = bits.getType();
  unsigned width = getLaneType(type).getIntOrFloatBitWidth();
  auto constant = [&](const llvm::APInt &number) -> Value {
    return createScalarOrSplatConstant(builder, loc, type, number);
  };
  // Those of negative floats are inverted, of positive ones only the sign.
  Value mask = arith::ShRSIOp::create(builder, loc, bits,
                                      constant(llvm::APInt(width, width - 1)));
  if (areOrdered)
    mask = invertBits(builder, loc, mask);
  mask = arith::OrIOp::create(builder, loc, mask,
                              constant(llvm::APInt::getSignMask(width)));
  return arith::XOrIOp::create(builder, loc, bits, mask);
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
  auto restore = [&](Value bits) {
    bits = orderBits(builder, loc, bits, /*areOrdered=*/true);
    Value floats = arith::BitcastOp::create(
        builder, loc, withLane(bits.getType(), lane), bits);
    return convertFloat(builder, loc, floats, b.f32);
  };
  auto [smallest, largest] =
      reduceToRange(builder, loc, ordered, granularity, restore);
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

namespace {

/// The smallest and the largest number of each group.
struct Range {
  Value smallest, largest;
};

/// Quantizes rows of bf16 on a CPU to pairs in bytes: even elements are low,
/// odd ones high.
///
/// A group's subtraction, product and rounding are monotone. So its integers
/// are from 0 to 15 if those of its smallest and its largest number are, and
/// bounds are needed only where these say so, also by a NaN.
class NibbleQuantizer {
public:
  NibbleQuantizer(const FloatBuilder &b, Value zeroPoints, Value factors,
                  int64_t granularity)
      : b(b), pairs(b), zeroPoints(zeroPoints), factors(factors),
        granularity(granularity) {}

  SmallVector<Value> convert(ValueRange rows, const Range &range) {
    Value isBounded = findBounded(range);
    markEarly({zeroPoints, factors, isBounded});
    SmallVector<Value> bounded = boundRows(rows, isBounded);
    return llvm::map_to_vector(bounded, [&](Value row) {
      constexpr int64_t chunk = PairConverter::kElements;
      int64_t elements = getNumLanes(row.getType());
      bool areFour = elements % (4 * chunk) == 0;
      return convertChunks(
          b, elements, areFour ? 4 * chunk : chunk, [&](int64_t first) {
            return areFour ? convertFour(row, first) : convertOne(row, first);
          });
    });
  }

private:
  /// Values of a group, in steps of its scale.
  Value getSteps(Value values, Value zeroPoint, Value factor) const {
    return b.mul(b.sub(values, zeroPoint), factor);
  }

  /// Whether all groups have integers from 0 to 15 without bounds.
  Value findBounded(const Range &range) const {
    auto compare = [&](arith::CmpFPredicate predicate, Value values,
                       float bound) -> Value {
      Value steps = getSteps(values, zeroPoints, factors);
      return arith::CmpFOp::create(b.builder, b.loc, predicate, steps,
                                   b.constant(steps, bound));
    };
    Value areBounded = arith::AndIOp::create(
        b.builder, b.loc,
        compare(arith::CmpFPredicate::OGE, range.smallest, -0.5f),
        compare(arith::CmpFPredicate::OLT, range.largest, kMax + 0.5f));
    if (isa<VectorType>(areBounded.getType()))
      areBounded = vector::ReductionOp::create(
          b.builder, b.loc, vector::CombiningKind::AND, areBounded);
    return areBounded;
  }

  /// Rows whose integers need no bounds: if some do, all their integers, with
  /// zero points of 0 and factors of 1. This is rare, so a branch costs less.
  SmallVector<Value> boundRows(ValueRange rows, Value isBounded) {
    OpBuilder &builder = b.builder;
    SmallVector<Value> results(rows);
    results.append({zeroPoints, factors});
    auto branch = scf::IfOp::create(
        builder, b.loc, isBounded,
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, b.loc, results);
        },
        [&](OpBuilder &, Location) {
          auto bounded = llvm::map_to_vector(
              rows, [&](Value row) { return boundRow(row); });
          bounded.append(
              {b.constant(zeroPoints, 0.0f), b.constant(factors, 1.0f)});
          scf::YieldOp::create(builder, b.loc, bounded);
        });
    results.assign(branch.getResults().begin(), branch.getResults().end());
    factors = results.pop_back_val();
    zeroPoints = results.pop_back_val();
    return results;
  }

  /// The integers of a row from 0 to 15, as bf16; 0 for a NaN.
  Value boundRow(Value row) const {
    return convertChunks(
        b, getNumLanes(row.getType()), PairConverter::kElements,
        [&](int64_t first) -> Value {
          Value zeroPoint = pairs.spread(zeroPoints, first, granularity);
          Value factor = pairs.spread(factors, first, granularity);
          auto round = [&](Value values) {
            Value steps = getSteps(values, zeroPoint, factor);
            steps = b.min(b.max(steps, 0.0f), static_cast<float>(kMax));
            return pairs.getBits(roundToFloats(b, steps));
          };
          EvenOdd values = pairs.widen(pairs.getPairs(row, first));
          Value integers =
              pairs.joinHighHalves({round(values.even), round(values.odd)});
          return vector::BitCastOp::create(
              b.builder, b.loc,
              VectorType::get(PairConverter::kElements,
                              b.builder.getBF16Type()),
              integers);
        });
  }

  /// The steps of the elements of chunks, each with its even ones first.
  SmallVector<Value> getChunks(Value row, int64_t first, int64_t count) const {
    SmallVector<Value> steps;
    for (int64_t i = 0; i < count; ++i, first += PairConverter::kElements) {
      Value zeroPoint = pairs.spread(zeroPoints, first, granularity);
      Value factor = pairs.spread(factors, first, granularity);
      EvenOdd values = pairs.widen(pairs.getPairs(row, first));
      steps.push_back(getSteps(values.even, zeroPoint, factor));
      steps.push_back(getSteps(values.odd, zeroPoint, factor));
    }
    return steps;
  }

  /// The bytes of a chunk.
  Value convertOne(Value row, int64_t first) const {
    return arith::TruncIOp::create(
        b.builder, b.loc, VectorType::get(kHostLanes, b.builder.getI8Type()),
        pairs.getBits(joinNibbles(b, getChunks(row, first, 1))));
  }

  /// The bytes of four chunks, which are those of lanes at first.
  Value convertFour(Value row, int64_t first) const {
    OpBuilder &builder = b.builder;
    constexpr int64_t chunks = 4, inBlock = 4;
    SmallVector<Value> steps = getChunks(row, first, chunks);
    auto join = [&](ArrayRef<Value> some) {
      return pairs.getBits(joinNibbles(b, some));
    };
    Value lanes =
        pairs.joinLowHalves({join(ArrayRef(steps).take_front(chunks)),
                             join(ArrayRef(steps).drop_front(chunks))});
    auto shuffle = [&](Type element, int64_t count,
                       function_ref<int64_t(int64_t)> getSource) {
      auto type = VectorType::get(count, element);
      Value from = vector::BitCastOp::create(builder, b.loc, type, lanes);
      lanes = vector::ShuffleOp::create(
          builder, b.loc, from, from,
          llvm::map_to_vector(llvm::seq<int64_t>(count), getSource));
    };
    // First in blocks of 16 bytes, as instructions have them.
    shuffle(builder.getI8Type(), chunks * kHostLanes, [&](int64_t to) {
      int64_t block = to / 16 * 16, chunk = to % 16 / inBlock;
      return block + to % inBlock * chunks + chunk;
    });
    shuffle(builder.getI32Type(), kHostLanes,
            [&](int64_t to) { return to % inBlock * chunks + to / inBlock; });
    return vector::BitCastOp::create(
        builder, b.loc,
        VectorType::get(chunks * kHostLanes, builder.getI8Type()), lanes);
  }

  const FloatBuilder &b;
  PairConverter pairs;
  Value zeroPoints, factors;
  int64_t granularity;
};

} // namespace

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
  if (hasPairs) {
    NibbleQuantizer quantizer(b, offsets, factors, granularity);
    result.rows = quantizer.convert(rows, {smallest, largest});
    return result;
  }
  for (Value row : rows) {
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
