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
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
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
        format(dyn_cast<FloatType>(type)), areBounded(areBounded) {
    findNaNs(scales);
    factors = balanceScales(b, scales);
    reciprocals = getReciprocals(b, scales);
  }

  Value convert(Value row, int64_t first) const {
    Value bits = pairs.getPairs(row, first);
    EvenOdd values =
        pairs.widen(format ? pairs.op<arith::AndIOp>(bits, 0x7fff7fff) : bits);
    auto spread = [&](Value groups) {
      return pairs.spread(groups, first, granularity);
    };
    auto quantize = [&](Value value) {
      value = b.mul(value, spread(factors));
      return round(b.fma(value, spread(reciprocals.high),
                         b.mul(value, spread(reciprocals.low))));
    };
    Value codes =
        pairs.joinLowHalves({quantize(values.even), quantize(values.odd)});
    if (format)
      codes = pairs.op<arith::OrIOp>(
          codes,
          pairs.op<arith::AndIOp>(pairs.op<arith::ShRUIOp>(bits, 8), 0x800080));
    codes = pairs.op<arith::AndIOp>(codes, spread(keptBits));
    codes = pairs.op<arith::OrIOp>(codes, spread(nanBits));
    Value bytes = pairs.getLowBytes(codes);
    return format
               ? Value(arith::BitcastOp::create(
                     b.builder, b.loc, withLane(bytes.getType(), type), bytes))
               : bytes;
  }

private:
  /// Groups whose scale is a NaN have the code of one.
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
    nanBits = b.select(isNaN, constant(nan << 16 | nan), constant(0));
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
  Value factors, keptBits, nanBits;
  Reciprocal reciprocals;
};

} // namespace

SmallVector<Value> kvcache::quantizePairs(const FloatBuilder &b,
                                          ArrayRef<Value> rows, Value scales,
                                          int64_t granularity, Type type,
                                          bool areBounded) {
  PairQuantizer quantizer(b, scales, granularity, type, areBounded);
  return llvm::map_to_vector(rows, [&](Value row) {
    return convertChunks(
        b, getNumLanes(row.getType()), PairConverter::kElements,
        [&](int64_t first) { return quantizer.convert(row, first); });
  });
}
