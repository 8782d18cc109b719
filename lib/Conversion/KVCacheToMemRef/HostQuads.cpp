//===- HostQuads.cpp - Four elements in a lane of a CPU -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostQuads.h"
#include "Quantization.h"
#include "kvcache/Conversion/NarrowFloats.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

bool QuadConverter::canConvert(Value bytes, int64_t perByte,
                               int64_t granularity) {
  return hasChunks(bytes, perByte, granularity, /*perLane=*/4);
}

/// Rounds f32 numbers to nearest even ones of bf16, which are the high halves.
/// A NaN of f32 stays one if not all of its bits are set.
static Value roundToHighHalves(const PairConverter &pairs, Value floats) {
  Value bits = pairs.getBits(floats);
  Value isOdd = pairs.op<arith::AndIOp>(pairs.op<arith::ShRUIOp>(bits, 16), 1);
  bits = pairs.op<arith::AddIOp>(bits, 0x7fff);
  return pairs.op<arith::AddIOp>(bits, isOdd);
}

Value QuadConverter::convert(function_ref<Value(int64_t)> widen) const {
  OpBuilder &builder = b.builder;
  SmallVector<Value> halves;
  for (int64_t i = 0; i < 4; i += 2) {
    Value even = roundToHighHalves(pairs, widen(i));
    Value odd = roundToHighHalves(pairs, widen(i + 1));
    halves.push_back(pairs.joinHighHalves({even, odd}));
  }
  Value joined =
      vector::InterleaveOp::create(builder, b.loc, halves[0], halves[1]);
  return vector::BitCastOp::create(
      builder, b.loc, VectorType::get(kElements, builder.getBF16Type()),
      joined);
}

/// The chunk of bytes from `first` on.
static Value slice(const FloatBuilder &b, Value bytes, int64_t first,
                   int64_t count) {
  if (getNumLanes(bytes.getType()) == count)
    return bytes;
  return vector::ExtractStridedSliceOp::create(b.builder, b.loc, bytes, first,
                                               count, /*strides=*/1);
}

/// Scales of which a NaN has not all bits set.
static Value quietNaNs(const FloatBuilder &b, Value scales) {
  Value isNaN = arith::CmpFOp::create(
      b.builder, b.loc, arith::CmpFPredicate::UNO, scales, scales);
  return b.select(
      isNaN,
      b.constant(scales.getType(),
                 llvm::APFloat::getQNaN(llvm::APFloat::IEEEsingle())),
      scales);
}

//===----------------------------------------------------------------------===//
// Elements of 8 bits
//===----------------------------------------------------------------------===//

bool kvcache::haveQuads(Type quantized) {
  auto type = dyn_cast<FloatType>(quantized);
  return type && type.getWidth() == 8 && !isa<Float8E8M0FNUType>(type) &&
         !llvm::APFloat::semanticsHasInf(type.getFloatSemantics());
}

/// `converted`, but NaNs where the elements of `bytes` are.
static Value restoreNaNs(const FloatBuilder &b, Value converted, Value bytes,
                         FloatType type) {
  OpBuilder &builder = b.builder;
  uint64_t nan = llvm::APFloat::getNaN(type.getFloatSemantics())
                     .bitcastToAPInt()
                     .getZExtValue();
  auto splat = [&](uint64_t bits) -> Value {
    auto lanes = cast<VectorType>(bytes.getType());
    return arith::ConstantOp::create(
        builder, b.loc, DenseElementsAttr::get(lanes, llvm::APInt(8, bits)));
  };
  Value magnitudes = arith::AndIOp::create(builder, b.loc, bytes, splat(0x7f));
  Value isNaN = arith::CmpIOp::create(builder, b.loc, arith::CmpIPredicate::eq,
                                      magnitudes, splat(nan & 0x7f));
  auto bf16 = cast<VectorType>(converted.getType());
  Value nans = arith::ConstantOp::create(
      builder, b.loc,
      DenseElementsAttr::get(bf16,
                             llvm::APFloat::getQNaN(llvm::APFloat::BFloat())));
  return b.select(isNaN, nans, converted);
}

Value kvcache::dequantizeQuads(const FloatBuilder &b, Value quantized,
                               Value scales, int64_t granularity) {
  OpBuilder &builder = b.builder;
  auto format = cast<FloatType>(getLaneType(quantized.getType()));
  quantized = arith::BitcastOp::create(
      builder, b.loc, withLane(quantized.getType(), builder.getI8Type()),
      quantized);
  scales = quietNaNs(b, scales);
  QuadConverter quads(b);
  PairConverter pairs(b);
  auto convert = [&](int64_t first) {
    Value bytes = slice(b, quantized, first, QuadConverter::kElements);
    Value lanes = vector::BitCastOp::create(
        builder, b.loc, VectorType::get(kHostLanes, builder.getI32Type()),
        bytes);
    Value scale = spreadGroups(b, scales, first, granularity, /*perLane=*/4);
    Value converted = quads.convert([&](int64_t i) {
      Value top = pairs.op<arith::ShLIOp>(lanes, 24 - 8 * i);
      Value number = extendHighBits(builder, b.loc, top, format);
      return b.mul(number, scale);
    });
    return restoreNaNs(b, converted, bytes, format);
  };
  return convertChunks(b, getNumLanes(quantized.getType()),
                       QuadConverter::kElements, convert);
}

//===----------------------------------------------------------------------===//
// Elements of 4 bits
//===----------------------------------------------------------------------===//

Value kvcache::dequantizeNibbles(const FloatBuilder &b, Value bytes,
                                 Value scale, Value zeroPoint,
                                 int64_t granularity) {
  OpBuilder &builder = b.builder;
  Value scales = quietNaNs(b, convertFloat(builder, b.loc, scale, b.f32));
  Value offsets = quietNaNs(b, convertFloat(builder, b.loc, zeroPoint, b.f32));
  QuadConverter quads(b);
  PairConverter pairs(b);
  constexpr int64_t count = QuadConverter::kElements / 2;
  auto convert = [&](int64_t first) {
    Value words = vector::BitCastOp::create(
        builder, b.loc, VectorType::get(kHostLanes, builder.getI16Type()),
        slice(b, bytes, first / 2, count));
    Value lanes = arith::ExtUIOp::create(
        builder, b.loc, VectorType::get(kHostLanes, builder.getI32Type()),
        words);
    Value factor = spreadGroups(b, scales, first, granularity, /*perLane=*/4);
    Value offset = spreadGroups(b, offsets, first, granularity, /*perLane=*/4);
    return quads.convert([&](int64_t i) {
      Value number =
          pairs.op<arith::AndIOp>(pairs.op<arith::ShRUIOp>(lanes, 4 * i), 15);
      number = arith::SIToFPOp::create(builder, b.loc, b.vectorOf(kHostLanes),
                                       number);
      return b.fma(number, factor, offset);
    });
  };
  return convertChunks(b, 2 * getNumLanes(bytes.getType()),
                       QuadConverter::kElements, convert);
}
