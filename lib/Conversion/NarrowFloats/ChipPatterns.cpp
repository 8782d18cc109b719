//===- ChipPatterns.cpp - Narrow floats by instructions of a chip ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chips convert two lanes at a time, which are neighbours in a register: PTX
// ISA, cvt. Chips without the instruction move bytes by `prmt` and rescale two
// lanes at a time.
//
// All of it works on registers of 16 or 32 bits that are elements of a vector,
// because LLVM selects a move for those, and shifts and masks for slices of
// vectors of bytes. In all of them the lane of lower number is in the lower
// bits, as LLVM orders lanes in vectors.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::narrow;
using llvm::APFloat;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

namespace {

/// Builds values of registers and vectors of them. Vectors have one dimension.
class Registers {
public:
  Registers(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  VectorType vectorOf(int64_t size, Type element) const {
    return VectorType::get(size, element);
  }
  Type intType(unsigned width) const { return builder.getIntegerType(width); }

  /// A scalar or a vector, as a vector whose size is a multiple of `multiple`.
  /// What is added at the end is zero.
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

  /// The bits of a vector as one of elements of another width.
  Value bitcast(Value vector, Type element) const {
    auto type = cast<VectorType>(vector.getType());
    int64_t bits = type.getDimSize(0) * type.getElementTypeBitWidth();
    return vector::BitCastOp::create(
        builder, loc, vectorOf(bits / element.getIntOrFloatBitWidth(), element),
        vector);
  }

  /// The elements of a vector.
  SmallVector<Value> elements(Value vector) const {
    SmallVector<Value> result;
    for (int64_t i :
         llvm::seq(cast<VectorType>(vector.getType()).getDimSize(0)))
      result.push_back(vector::ExtractOp::create(builder, loc, vector, i));
    return result;
  }
  /// The bits of a vector in registers of `width` bits.
  SmallVector<Value> split(Value vector, unsigned width) const {
    return elements(bitcast(vector, intType(width)));
  }
  /// A vector of the bits of registers.
  Value join(ArrayRef<Value> registers, Type element) const {
    VectorType type = vectorOf(registers.size(), registers.front().getType());
    Value joined =
        vector::FromElementsOp::create(builder, loc, type, registers);
    return bitcast(joined, element);
  }

  /// A register as a vector of two elements, or back.
  Value castRegister(Value value, Type type) const {
    return LLVM::BitcastOp::create(builder, loc, type, value);
  }

  /// Bytes of `high` and `low`, which has bytes 0 to 3, by the nibbles of
  /// `selector`: PTX ISA, prmt. A nibble of 8 or more selects eight copies of
  /// the highest bit of the byte that it names less 8.
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

  /// Where the values are built.
  OpBuilder &builder;
  Location loc;
};

} // namespace

/// Whether the type's lanes are a scalar, or a vector of one dimension whose
/// size is known.
static bool hasRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return !vector || (vector.getRank() == 1 && !vector.isScalable());
}

/// The lanes of a type in a vector of one dimension, or of a scalar.
static int64_t getNumLanes(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getDimSize(0) : 1;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Packs the lower halves of bytes, of even number, two each.
static Value packHalves(const Registers &r, Value codes) {
  auto halves = vector::DeinterleaveOp::create(r.builder, r.loc, codes);
  Elementwise e(r.builder, r.loc, halves.getRes1().getType());
  return e.op<arith::OrIOp>(halves.getRes1(),
                            e.op<arith::ShLIOp>(halves.getRes2(), 4));
}

/// Narrow floats as a vector of bytes whose size is a multiple of `multiple`.
/// Lanes of 8 or 6 bits have a byte each, with zeros above 6 bits; lanes of 4
/// bits are two in a byte.
static Value readBytes(const Registers &r, Value floats, int64_t multiple) {
  Type type = floats.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (width == 4 && isa<VectorType>(type) && getNumLanes(type) % 2 == 0)
    return r.pad(r.bitcast(floats, r.intType(8)), multiple);
  Elementwise e(r.builder, r.loc, type);
  Value codes = e.toBits(floats);
  if (width < 8)
    codes = e.extendUnsigned(codes, 8);
  if (width > 4)
    return r.pad(codes, multiple);
  return packHalves(r, r.pad(codes, 2 * multiple));
}

/// Narrow floats of `type` from bytes as `readBytes` makes them.
static Value writeBytes(const Registers &r, Value bytes, Type type) {
  FloatType element = getFloatLane(type);
  if (element.getWidth() == 4) {
    // Through bytes of one lane each, unless the bytes are full.
    if (isa<VectorType>(type) && getNumLanes(type) % 2 == 0)
      return r.bitcast(
          r.unpad(bytes, r.vectorOf(getNumLanes(type) / 2, r.intType(8))),
          element);
    Elementwise e(r.builder, r.loc, bytes.getType());
    bytes = vector::InterleaveOp::create(r.builder, r.loc, bytes,
                                         e.op<arith::ShRUIOp>(bytes, 4));
  }
  Elementwise e(r.builder, r.loc, type);
  Value codes = r.unpad(bytes, type);
  if (element.getWidth() < 8)
    codes = e.truncate(codes, element.getWidth());
  return e.bitcast(codes, element);
}

//===----------------------------------------------------------------------===//
// Extension
//===----------------------------------------------------------------------===//

/// Extends bytes by `cvt`: PTX ISA, cvt, "the value converted from the upper 8
/// bits of a is stored in the upper 16 bits of d". The result has f16 lanes,
/// those of f8E8M0FNU bf16.
static Value extendByCvt(const Registers &r, Value bytes, FloatType from) {
  bool isE8M0 = isa<Float8E8M0FNUType>(from);
  FloatType to = isE8M0 ? FloatType(r.builder.getBF16Type())
                        : FloatType(r.builder.getF16Type());
  Type pair = r.vectorOf(2, to), twoBytes = r.vectorOf(2, r.intType(8));
  SmallVector<Value> results;
  for (Value source : r.split(bytes, from.getWidth() == 4 ? 8 : 16)) {
    Value result;
    if (from.getWidth() == 4) {
      result = NVVM::ConvertF4x2ToF16x2Op::create(r.builder, r.loc, pair,
                                                  source, /*relu=*/false, from);
    } else {
      source = r.castRegister(source, twoBytes);
      if (isE8M0)
        result = NVVM::ConvertF8x2ToBF16x2Op::create(r.builder, r.loc, pair,
                                                     source, from);
      else if (from.getWidth() == 6)
        result = NVVM::ConvertF6x2ToF16x2Op::create(
            r.builder, r.loc, pair, source, /*relu=*/false, from);
      else
        result = NVVM::ConvertF8x2ToF16x2Op::create(
            r.builder, r.loc, pair, source, /*relu=*/false, from);
    }
    results.push_back(r.castRegister(result, r.intType(32)));
  }
  return r.join(results, to);
}

/// Adds the bytes of `low` and `high`, one of each in turn, to `words`.
static void interleaveBytes(const Registers &r, Value low, Value high,
                            SmallVectorImpl<Value> &words) {
  words.push_back(r.permute(low, high, 0x5140));
  words.push_back(r.permute(low, high, 0x7362));
}

/// Registers with two lanes of 16 bits, whose upper halves are the bytes.
static SmallVector<Value> placeInUpperHalves(const Registers &r, Value bytes) {
  SmallVector<Value> words;
  for (Value word : r.split(bytes, 32))
    interleaveBytes(r, r.constant(0), word, words);
  return words;
}

/// Extends bytes of f8E4M3FN to `to`, f16 or bf16, in arithmetic on pairs.
///
/// The bits, moved to their places, are a number whose exponent is wrong by the
/// difference of the biases, and multiplying repairs that. The NaN comes out as
/// 480, the number after the largest one. A second product overflows for it
/// alone, and infinity times zero is a NaN.
static Value extendE4M3(const Registers &r, Value bytes, Format from,
                        Format to) {
  SmallVector<Value> placed = placeInUpperHalves(r, bytes);
  Value words = r.join(placed, r.intType(32));
  Elementwise e(r.builder, r.loc, words.getType());
  auto onBothLanes = [](uint64_t bits) { return bits | bits << 16; };
  unsigned shift = from.mantissa + 8 - to.mantissa;
  uint64_t magnitude = (from.signBit() - 1) << (to.mantissa - from.mantissa);
  words =
      e.op<arith::OrIOp>(e.op<arith::AndIOp>(words, onBothLanes(to.signBit())),
                         e.op<arith::AndIOp>(e.op<arith::ShRUIOp>(words, shift),
                                             onBothLanes(magnitude)));

  Value lanes = r.bitcast(words, to.type);
  Elementwise perLane(r.builder, r.loc, lanes.getType());
  // As a fused operation, which bf16 has on every chip: PTX ISA, fma.
  auto multiplyAdd = [&](Value value, uint64_t factor, Value addend) -> Value {
    return LLVM::FMAOp::create(r.builder, r.loc, value,
                               perLane.constant(value.getType(), factor),
                               addend);
  };
  Value minusZero = perLane.constant(lanes.getType(), to.signBit());
  Value number = multiplyAdd(
      lanes, to.powerOfTwo(from.minExponent - to.minExponent), minusZero);
  // Between the quotients by 448, the largest number, and by 480.
  APFloat factor = to.largest();
  factor.divide(APFloat(to.semantics(), "464"), APFloat::rmTowardZero);
  Value infinite = multiplyAdd(number, to.bits(factor), minusZero);
  return multiplyAdd(infinite, 0, number);
}

/// Extends bytes of two f4E2M1FN each to `to`, f16 or bf16, by a lookup: the
/// eight magnitudes are the bytes of two registers, and a lane selects one.
static Value extendFP4(const Registers &r, Value bytes, Format to) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  uint64_t high = 0, low = 0;
  for (auto [i, value] : llvm::enumerate(kMagnitudes)) {
    uint64_t bits = to.bits(APFloat(value));
    high |= (bits >> 8) << 8 * i;
    low |= (bits & 0xFF) << 8 * i;
  }
  auto lookUp = [&](uint64_t table, Value selector) {
    return r.permute(r.constant(table), r.constant(table >> 32), selector);
  };
  Value ones = r.constant(0x80808080);
  SmallVector<Value> words;
  Elementwise e(r.builder, r.loc, r.intType(32));
  for (Value lanes : r.split(bytes, 32)) {
    for (unsigned shift : {0, 16}) {
      Value selector = e.op<arith::ShRUIOp>(lanes, shift);
      Value magnitude = e.op<arith::AndIOp>(selector, 0x7777);
      // A lane with a sign gets eight ones, and one without the byte 0x80: the
      // second highest bits are the signs.
      Value sign = r.permute(ones, ones, selector);
      sign = e.op<arith::ShLIOp>(sign, 1);
      sign = e.op<arith::AndIOp>(sign, 0x80808080);
      Value upper = e.op<arith::OrIOp>(lookUp(high, magnitude), sign);
      Value lower = low ? lookUp(low, magnitude) : r.constant(0);
      interleaveBytes(r, lower, upper, words);
    }
  }
  return r.join(words, to.type);
}

/// Whether the chip has `cvt` from and to the format.
static bool hasCvt(const Chip &chip, FloatType format) {
  bool isFP8 = isa<Float8E4M3FNType, Float8E5M2Type>(format);
  return chip.has(isFP8 ? Feature::FP8Conversion : Feature::NarrowConversion);
}

namespace {

/// A pattern for ops on registers whose chip is known.
template <typename OpTy> struct OnChip : OpRewritePattern<OpTy> {
  OnChip(MLIRContext *context, const Chip *fallback)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2), fallback(fallback) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const final {
    if (!hasRegisters(op.getType()))
      return rewriter.notifyMatchFailure(op, "not of one dimension");
    const Chip *chip = getTargetChip(op);
    if (!chip)
      chip = fallback;
    if (!chip)
      return rewriter.notifyMatchFailure(op, "no known chip");
    return rewrite(op, *chip, rewriter);
  }

private:
  /// Rewrites the op, or says why it stays.
  virtual LogicalResult rewrite(OpTy op, const Chip &chip,
                                PatternRewriter &rewriter) const = 0;

  const Chip *fallback;
};

/// Extends narrow floats to f16 or bf16, and these to what is asked for.
struct ExtendOnChip : OnChip<arith::ExtFOp> {
  using OnChip::OnChip;

private:
  LogicalResult rewrite(arith::ExtFOp op, const Chip &chip,
                        PatternRewriter &rewriter) const override {
    FloatType from = getFloatLane(op.getIn().getType());
    FloatType to = getFloatLane(op.getType());
    if (!isNarrow(from) || !isWide(to))
      return rewriter.notifyMatchFailure(op, "not from narrow to wide");

    Registers r(rewriter, op.getLoc());
    Value lanes = extend(r, op.getIn(), from, to, chip);
    if (!lanes)
      return rewriter.notifyMatchFailure(op, "no short form on this chip");
    Elementwise e(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, e.convertFloat(r.unpad(lanes, op.getType()), to));
    return success();
  }

  /// At least the lanes of `in`, as f16 or bf16; null where integer arithmetic
  /// is as good.
  static Value extend(const Registers &r, Value in, FloatType from,
                      FloatType to, const Chip &chip) {
    FloatType f16 = r.builder.getF16Type();
    if (hasCvt(chip, from))
      return extendByCvt(r, readBytes(r, in, from.getWidth() == 4 ? 1 : 2),
                         from);
    Format half(to.isBF16() ? to : f16);
    if (isa<Float8E4M3FNType>(from))
      return extendE4M3(r, readBytes(r, in, 4), Format(from), half);
    if (isa<Float8E5M2Type>(from)) // The upper half of an f16.
      return r.join(placeInUpperHalves(r, readBytes(r, in, 4)), f16);
    if (isa<Float4E2M1FNType>(from))
      return extendFP4(r, readBytes(r, in, 4), half);
    return {};
  }
};

} // namespace

namespace {

/// Extends pairs of bf16 to f32, whose upper halves they are, in the registers
/// that hold them: a shift and a mask. Each alone would be moved to a register
/// of its own first.
struct ExtendPairsOfBF16 : OnChip<arith::ExtFOp> {
  using OnChip::OnChip;

private:
  LogicalResult rewrite(arith::ExtFOp op, const Chip &,
                        PatternRewriter &rewriter) const override {
    auto from = dyn_cast<VectorType>(op.getIn().getType());
    if (!from || !from.getElementType().isBF16() || from.getDimSize(0) % 2 != 0)
      return rewriter.notifyMatchFailure(op, "not pairs of bf16");
    if (!getFloatLane(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not to f32");
    Registers r(rewriter, op.getLoc());
    Elementwise e(rewriter, op.getLoc(), r.intType(32));
    SmallVector<Value> lanes;
    for (Value pair : r.split(op.getIn(), 32)) {
      lanes.push_back(e.op<arith::ShLIOp>(pair, 16));
      lanes.push_back(e.op<arith::AndIOp>(pair, 0xFFFF0000));
    }
    rewriter.replaceOp(op, r.join(lanes, rewriter.getF32Type()));
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Truncation
//===----------------------------------------------------------------------===//

/// Truncates an even number of f32 lanes to bytes by `cvt`, saturating.
///
/// PTX ISA, cvt: "the value converted from input a is stored in the upper 8
/// bits of d and the value converted from input b is stored in the lower 8
/// bits", and so with halves of a byte. So the lane of odd number is a.
static Value truncateByCvt(const Registers &r, Value lanes, FloatType to) {
  SmallVector<Value> singles = r.elements(lanes), results;
  for (size_t i = 0; i < singles.size(); i += 2) {
    Value a = singles[i + 1], b = singles[i];
    Value result;
    if (to.getWidth() == 4)
      result = NVVM::ConvertF32x2ToF4x2Op::create(
          r.builder, r.loc, r.intType(8), a, b, /*relu=*/false, to);
    else if (to.getWidth() == 6)
      result = NVVM::ConvertF32x2ToF6x2Op::create(
          r.builder, r.loc, r.intType(16), a, b, /*relu=*/false, to);
    else
      result = NVVM::ConvertF32x2ToF8x2Op::create(
          r.builder, r.loc, r.intType(16), a, b, NVVM::FPRoundingMode::RN,
          NVVM::SaturationMode::SATFINITE, /*relu=*/false, to);
    results.push_back(result);
  }
  return r.join(results, r.intType(8));
}

/// Truncates an even number of f16 lanes to bytes of an 8-bit format by `cvt`,
/// saturating: PTX ISA, cvt, "the value converted from the upper 16 bits of
/// input a is stored in the upper 8 bits of d".
static Value truncateF16ByCvt(const Registers &r, Value lanes, FloatType to) {
  Type pair = r.vectorOf(2, r.builder.getF16Type());
  SmallVector<Value> results;
  for (Value source : r.split(lanes, 32))
    results.push_back(NVVM::ConvertF16x2ToF8x2Op::create(
        r.builder, r.loc, r.intType(16), r.castRegister(source, pair),
        /*relu=*/false, to));
  return r.join(results, r.intType(8));
}

namespace {

/// Truncates to fp8, fp6 and fp4 by `cvt` where the chip has it, and otherwise
/// from f32, to which a chip extends in one instruction.
struct TruncateOnChip : OnChip<arith::TruncFOp> {
  using OnChip::OnChip;

private:
  LogicalResult rewrite(arith::TruncFOp op, const Chip &chip,
                        PatternRewriter &rewriter) const override {
    FloatType from = getFloatLane(op.getIn().getType());
    FloatType to = getFloatLane(op.getType());
    if (!isNarrow(to) || !isWide(from))
      return rewriter.notifyMatchFailure(op, "not from wide to narrow");
    // `cvt` ignores the sign of what becomes f8E8M0FNU.
    if (isa<Float8E8M0FNUType>(to) || !roundsToNearestEven(op))
      return rewriter.notifyMatchFailure(op, "no cvt rounds so");

    Registers r(rewriter, op.getLoc());
    bool cvt = hasCvt(chip, to);
    if (cvt && from.isF16() && to.getWidth() == 8) {
      Value bytes = truncateF16ByCvt(r, r.pad(op.getIn(), 2), to);
      rewriter.replaceOp(op, writeBytes(r, bytes, op.getType()));
      return success();
    }
    if (!cvt && from.getWidth() >= 32)
      return rewriter.notifyMatchFailure(op, "no short form on this chip");
    Value single = toF32(rewriter, op, from), result;
    if (cvt)
      result =
          writeBytes(r, truncateByCvt(r, r.pad(single, 2), to), op.getType());
    else // Not an arith.truncf, which would fold with the extension.
      result = truncateInIntegers(rewriter, op.getLoc(), single, op.getType());
    rewriter.replaceOp(op, result);
    return success();
  }

  /// The op's operand as f32 that rounds to a narrow format as it does.
  static Value toF32(OpBuilder &builder, arith::TruncFOp op, FloatType from) {
    if (from.isF64())
      return roundToOddF32(builder, op.getLoc(), op.getIn());
    Elementwise e(builder, op.getLoc(), op.getType());
    return e.convertFloat(op.getIn(), builder.getF32Type());
  }
};

} // namespace

void narrow::populateChipPatterns(RewritePatternSet &patterns,
                                  const Chip *fallback) {
  patterns.add<ExtendOnChip, ExtendPairsOfBF16, TruncateOnChip>(
      patterns.getContext(), fallback);
}
