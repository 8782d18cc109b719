//===- HostPairs.cpp - Pairs of bf16 in the lanes of a CPU ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostPairs.h"
#include "Quantization.h"
#include "Quotients.h"
#include "kvcache/Conversion/NarrowFloats.h"
#include "kvcache/Support/EarlyValues.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

bool kvcache::hasChunks(Value value, int64_t perLaneOfValue,
                        int64_t granularity, int64_t perLane) {
  auto type = dyn_cast<VectorType>(value.getType());
  if (!type || type.getRank() != 1 ||
      isInGPUCode(value.getParentBlock()->getParentOp()))
    return false;
  int64_t chunk = perLane * kHostLanes;
  bool hasWholeGroups = granularity % perLane == 0 && chunk % granularity == 0;
  return type.getDimSize(0) * perLaneOfValue % chunk == 0 &&
         (hasWholeGroups || granularity % chunk == 0);
}

bool PairConverter::canConvert(Value row, int64_t granularity) {
  return getLaneType(row.getType()).isBF16() &&
         hasChunks(row, /*perLaneOfValue=*/1, granularity, /*perLane=*/2);
}

Value kvcache::convertChunks(const FloatBuilder &b, int64_t elements,
                             int64_t chunk,
                             function_ref<Value(int64_t)> convert) {
  SmallVector<Value> chunks;
  for (int64_t first = 0; first < elements; first += chunk)
    chunks.push_back(convert(first));
  return b.join(chunks);
}

Value kvcache::spreadGroups(const FloatBuilder &b, Value groups, int64_t first,
                            int64_t granularity, int64_t perLane) {
  auto vector = dyn_cast<VectorType>(groups.getType());
  if (vector && granularity < perLane * kHostLanes) {
    SmallVector<int64_t> numbers;
    for (int64_t lane = 0; lane < kHostLanes; ++lane)
      numbers.push_back((first + perLane * lane) / granularity);
    return vector::ShuffleOp::create(b.builder, b.loc, groups, groups, numbers);
  }
  if (vector)
    groups = vector::ExtractOp::create(b.builder, b.loc, groups,
                                       first / granularity);
  return vector::BroadcastOp::create(
      b.builder, b.loc, VectorType::get(kHostLanes, groups.getType()), groups);
}

Value PairConverter::constant(uint32_t bits) const {
  auto type = VectorType::get(kHostLanes, b.builder.getI32Type());
  return arith::ConstantOp::create(
      b.builder, b.loc, DenseElementsAttr::get(type, llvm::APInt(32, bits)));
}

Value PairConverter::getPairs(Value row, int64_t first) const {
  int64_t elements = cast<VectorType>(row.getType()).getDimSize(0);
  if (elements > kElements)
    row = vector::ExtractStridedSliceOp::create(b.builder, b.loc, row, first,
                                                kElements, /*strides=*/1);
  return vector::BitCastOp::create(
      b.builder, b.loc, VectorType::get(kHostLanes, b.builder.getI32Type()),
      row);
}

EvenOdd PairConverter::widen(Value pairs) const {
  auto cast = [&](Value bits) -> Value {
    return arith::BitcastOp::create(b.builder, b.loc, b.vectorOf(kHostLanes),
                                    bits);
  };
  return {cast(op<arith::ShLIOp>(pairs, 16)),
          cast(op<arith::AndIOp>(pairs, 0xffff0000))};
}

Value PairConverter::joinLowHalves(const EvenOdd &integers) const {
  return op<arith::OrIOp>(op<arith::AndIOp>(integers.even, 0xffff),
                          op<arith::ShLIOp>(integers.odd, 16));
}

Value PairConverter::joinHighHalves(const EvenOdd &integers) const {
  return op<arith::OrIOp>(op<arith::ShRUIOp>(integers.even, 16),
                          op<arith::AndIOp>(integers.odd, 0xffff0000));
}

Value PairConverter::getBits(Value floats) const {
  return arith::BitcastOp::create(
      b.builder, b.loc, withLane(floats.getType(), b.builder.getI32Type()),
      floats);
}

Value PairConverter::getLowBytes(Value pairs) const {
  OpBuilder &builder = b.builder;
  Value halves = vector::BitCastOp::create(
      builder, b.loc, VectorType::get(kElements, builder.getI16Type()), pairs);
  return arith::TruncIOp::create(
      builder, b.loc, VectorType::get(kElements, builder.getI8Type()), halves);
}

Value PairConverter::joinBytes(Value front, Value back, int64_t offset) const {
  OpBuilder &builder = b.builder;
  auto bytes = VectorType::get(2 * kElements, builder.getI8Type());
  SmallVector<int64_t> numbers;
  for (int64_t i = 0; i < 2 * kElements; ++i)
    numbers.push_back(2 * i + offset);
  Value joined = vector::ShuffleOp::create(
      builder, b.loc, vector::BitCastOp::create(builder, b.loc, bytes, front),
      vector::BitCastOp::create(builder, b.loc, bytes, back), numbers);
  return vector::BitCastOp::create(
      builder, b.loc, VectorType::get(kHostLanes, builder.getI32Type()),
      joined);
}

Value PairConverter::spread(Value groups, int64_t first,
                            int64_t granularity) const {
  return spreadGroups(b, groups, first, granularity, /*perLane=*/2);
}

//===----------------------------------------------------------------------===//
// Quantization
//===----------------------------------------------------------------------===//

namespace {

/// Quantizes the chunks of a row.
class PairQuantizer {
public:
  PairQuantizer(const FloatBuilder &b, Value scales, int64_t granularity,
                Type type, bool areBounded)
      : b(b), pairs(b), granularity(granularity), type(type),
        format(dyn_cast<FloatType>(type)), areBounded(areBounded),
        reciprocals(getReciprocals(b, scales)) {
    findNaNs(scales);
    markEarly({reciprocals.high, reciprocals.low, keptBits, nanBits});
  }

  /// Quantizes a row by chunks, two at once where groups allow it.
  Value convert(Value row) const {
    constexpr int64_t chunk = PairConverter::kElements;
    bool areFour = hasChunks(row, /*perLaneOfValue=*/1, granularity,
                             /*perLane=*/4);
    return convertChunks(b, getNumLanes(row.getType()),
                         areFour ? 2 * chunk : chunk, [&](int64_t first) {
                           Value bytes = areFour ? convertTwo(row, first)
                                                 : convertOne(row, first);
                           return asElements(bytes);
                         });
  }

private:
  /// The codes of a chunk, of floats without signs, in the low bytes of halves.
  Value computeCodes(Value bits, int64_t first) const {
    EvenOdd values =
        pairs.widen(format ? pairs.op<arith::AndIOp>(bits, 0x7fff7fff) : bits);
    Value high = pairs.spread(reciprocals.high, first, granularity);
    Value low = pairs.spread(reciprocals.low, first, granularity);
    auto quantize = [&](Value value) {
      return round(b.fma(value, high, b.mul(value, low)));
    };
    return pairs.joinLowHalves({quantize(values.even), quantize(values.odd)});
  }

  /// The bytes of a chunk.
  Value convertOne(Value row, int64_t first) const {
    Value bits = pairs.getPairs(row, first);
    Value codes = computeCodes(bits, first);
    if (format)
      codes = pairs.op<arith::OrIOp>(
          codes,
          pairs.op<arith::AndIOp>(pairs.op<arith::ShRUIOp>(bits, 8), 0x800080));
    return pairs.getLowBytes(insertNaNs(codes, first, /*perLane=*/2));
  }

  /// The bytes of two chunks. Their signs and NaNs are those of four elements
  /// in a lane.
  Value convertTwo(Value row, int64_t first) const {
    constexpr int64_t chunk = PairConverter::kElements;
    Value front = pairs.getPairs(row, first),
          back = pairs.getPairs(row, first + chunk);
    Value codes = pairs.joinBytes(computeCodes(front, first),
                                  computeCodes(back, first + chunk),
                                  /*offset=*/0);
    if (format)
      codes = pairs.op<arith::OrIOp>(
          codes, pairs.op<arith::AndIOp>(
                     pairs.joinBytes(front, back, /*offset=*/1), 0x80808080));
    return vector::BitCastOp::create(
        b.builder, b.loc, VectorType::get(2 * chunk, b.builder.getI8Type()),
        insertNaNs(codes, first, /*perLane=*/4));
  }

  /// Codes of which those of groups without a number are NaNs.
  Value insertNaNs(Value codes, int64_t first, int64_t perLane) const {
    codes = pairs.op<arith::AndIOp>(
        codes, spreadGroups(b, keptBits, first, granularity, perLane));
    return pairs.op<arith::OrIOp>(
        codes, spreadGroups(b, nanBits, first, granularity, perLane));
  }

  Value asElements(Value bytes) const {
    if (!format)
      return bytes;
    return arith::BitcastOp::create(b.builder, b.loc,
                                    withLane(bytes.getType(), type), bytes);
  }

  /// Finds the groups whose scale is a NaN, which have the code of one.
  void findNaNs(Value scales) {
    OpBuilder &builder = b.builder;
    uint32_t nan = 0x81; // -127
    if (format)
      nan = llvm::APFloat::getQNaN(format.getFloatSemantics())
                .bitcastToAPInt()
                .getZExtValue();
    Type integers = withLane(scales.getType(), builder.getI32Type());
    auto constant = [&](int32_t bits) -> Value {
      return createScalarOrSplatConstant(builder, b.loc, integers,
                                         APInt(32, bits, /*isSigned=*/true));
    };
    Value isNaN = arith::CmpFOp::create(
        builder, b.loc, arith::CmpFPredicate::UNO, scales, scales);
    keptBits = b.select(isNaN, constant(0), constant(-1));
    nanBits = b.select(isNaN, constant(nan * 0x01010101), constant(0));
  }

  /// The codes of quotients, of floats those of magnitudes, in low bytes.
  Value round(Value quotients) const {
    if (format)
      return roundMagnitudes(b.builder, b.loc, quotients, format, areBounded);
    if (!areBounded)
      quotients = b.min(b.max(quotients, -127.0f), 127.0f);
    return roundToIntegers(b.builder, b.loc, quotients);
  }

  const FloatBuilder &b;
  PairConverter pairs;
  int64_t granularity;
  Type type;
  /// Null for integers.
  FloatType format;
  bool areBounded;
  Reciprocal reciprocals;
  Value keptBits, nanBits;
};

} // namespace

/// Rows of bf16 whose groups are multiplied by `factors`, powers of two.
static SmallVector<Value> scaleRows(const FloatBuilder &b, ArrayRef<Value> rows,
                                    Value factors, int64_t granularity) {
  PairConverter pairs(b);
  auto multiply = [&](Value row, int64_t first) -> Value {
    EvenOdd values = pairs.widen(pairs.getPairs(row, first));
    Value factor = pairs.spread(factors, first, granularity);
    Value products =
        pairs.joinHighHalves({pairs.getBits(b.mul(values.even, factor)),
                              pairs.getBits(b.mul(values.odd, factor))});
    return vector::BitCastOp::create(
        b.builder, b.loc,
        VectorType::get(PairConverter::kElements, b.builder.getBF16Type()),
        products);
  };
  return llvm::map_to_vector(rows, [&](Value row) {
    return convertChunks(b, getNumLanes(row.getType()),
                         PairConverter::kElements,
                         [&](int64_t first) { return multiply(row, first); });
  });
}

/// Brings scales of any size, with their rows, to where reciprocals are normal
/// numbers. This is rare, so that a branch costs less than products.
static SmallVector<Value> balanceRows(const FloatBuilder &b,
                                      ArrayRef<Value> rows, Value &scales,
                                      int64_t granularity) {
  OpBuilder &builder = b.builder;
  auto compare = [&](arith::CmpFPredicate predicate, float bound) -> Value {
    return arith::CmpFOp::create(builder, b.loc, predicate, scales,
                                 b.constant(scales, bound));
  };
  constexpr float kSmall = 0x1p-100f, kLarge = 0x1p100f;
  Value areSmall = compare(arith::CmpFPredicate::OLT, kSmall);
  Value areLarge = compare(arith::CmpFPredicate::OGT, kLarge);
  Value isAny = arith::OrIOp::create(builder, b.loc, areSmall, areLarge);
  if (isa<VectorType>(isAny.getType()))
    isAny = vector::ReductionOp::create(builder, b.loc,
                                        vector::CombiningKind::OR, isAny);
  SmallVector<Value> all(rows);
  all.push_back(scales);
  auto branch = scf::IfOp::create(
      builder, b.loc, isAny,
      [&](OpBuilder &, Location) {
        Value factors = b.select(areLarge, b.constant(scales, 0x1p-64f),
                                 b.constant(scales, 1.0f));
        factors = b.select(areSmall, b.constant(scales, 0x1p64f), factors);
        SmallVector<Value> scaled = scaleRows(b, rows, factors, granularity);
        scaled.push_back(b.mul(scales, factors));
        scf::YieldOp::create(builder, b.loc, scaled);
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, b.loc, all);
      });
  scales = branch.getResults().back();
  return llvm::to_vector_of<Value>(branch.getResults().drop_back());
}

SmallVector<Value> kvcache::quantizePairs(const FloatBuilder &b,
                                          ArrayRef<Value> rows, Value scales,
                                          int64_t granularity, Type type,
                                          bool areBounded) {
  SmallVector<Value> balanced = balanceRows(b, rows, scales, granularity);
  PairQuantizer quantizer(b, scales, granularity, type, areBounded);
  return llvm::map_to_vector(balanced,
                             [&](Value row) { return quantizer.convert(row); });
}
