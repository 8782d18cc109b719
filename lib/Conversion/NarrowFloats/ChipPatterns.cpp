//===- ChipPatterns.cpp - Narrow floats with instructions of a chip -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chips convert two adjacent lanes of a register at a time: PTX ISA, cvt. On
// chips without the instruction, the patterns move bytes with `prmt` and
// rescale two lanes at a time.
//
// The patterns work on registers of 16 or 32 bits that are elements of a
// vector, because LLVM selects moves for these, but shifts and masks for slices
// of byte vectors. In a register, the lane with the lower number has the lower
// bits, as in LLVM vectors.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "Registers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::narrow;
using llvm::APFloat;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Packs the lower halves of an even number of bytes, two per byte.
static Value packHalves(const Registers &r, Value codes) {
  auto halves = vector::DeinterleaveOp::create(r.builder, r.loc, codes);
  Elementwise e(r.builder, r.loc, halves.getRes1().getType());
  return e.op<arith::OrIOp>(halves.getRes1(),
                            e.op<arith::ShLIOp>(halves.getRes2(), 4));
}

/// Converts narrow floats to a vector of bytes whose size is a multiple of
/// `multiple`. A lane of 8 or 6 bits has one byte, zero-extended; two lanes of
/// 4 bits share a byte.
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

/// Converts bytes in the format of `readBytes` to narrow floats of `type`.
static Value writeBytes(const Registers &r, Value bytes, Type type) {
  FloatType element = getFloatLane(type);
  if (element.getWidth() == 4) {
    // Use bytes of one lane each, unless all bytes have two lanes.
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

/// Extends bytes with `cvt`: PTX ISA, cvt, "the value converted from the upper
/// 8 bits of a is stored in the upper 16 bits of d". The lanes of the result
/// are f16, or bf16 for f8E8M0FNU.
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

/// Appends the interleaved bytes of `low` and `high` to `words`.
static void interleaveBytes(const Registers &r, Value low, Value high,
                            SmallVectorImpl<Value> &words) {
  words.push_back(r.permute(low, high, 0x5140));
  words.push_back(r.permute(low, high, 0x7362));
}

/// Returns registers of two 16-bit lanes, whose upper halves are the bytes.
static SmallVector<Value> placeInUpperHalves(const Registers &r, Value bytes) {
  SmallVector<Value> words;
  for (Value word : r.split(bytes, 32))
    interleaveBytes(r, r.constant(0), word, words);
  return words;
}

/// Extends bytes of f8E4M3FN to `to`, f16 or bf16, in arithmetic on pairs.
///
/// The bits, moved to their positions in `to`, are a number whose exponent is
/// off by the difference of the biases; a multiplication corrects this. The NaN
/// becomes 480, the number after the largest one. A second product overflows
/// only for it, and infinity times zero is a NaN.
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
  // Use the fused operation, which every chip has for bf16: PTX ISA, fma.
  auto multiplyAdd = [&](Value value, uint64_t factor, Value addend) -> Value {
    return LLVM::FMAOp::create(r.builder, r.loc, value,
                               perLane.constant(value.getType(), factor),
                               addend);
  };
  Value minusZero = perLane.constant(lanes.getType(), to.signBit());
  Value number = multiplyAdd(
      lanes, to.powerOfTwo(from.minExponent - to.minExponent), minusZero);
  // Choose a factor that overflows for 480, but not for 448, the largest
  // number.
  APFloat factor = to.largest();
  factor.divide(APFloat(to.semantics(), "464"), APFloat::rmTowardZero);
  Value infinite = multiplyAdd(number, to.bits(factor), minusZero);
  return multiplyAdd(infinite, 0, number);
}

/// Extends bytes of two f4E2M1FN each to `to`, f16 or bf16, with a lookup: two
/// registers have the eight magnitudes as bytes, and a lane selects one.
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
      // A negative lane gets eight ones, and a nonnegative lane the byte 0x80,
      // so the second highest bits are the signs.
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
  if (hasUse(format, FormatUse::FP8))
    return chip.has(Feature::FP8Conversion);
  return hasUse(format, FormatUse::NarrowCvt) &&
         chip.has(Feature::NarrowConversion);
}

namespace {

/// A pattern for ops on registers with a known chip.
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
  /// Rewrites the op, or notifies why it does not match.
  virtual LogicalResult rewrite(OpTy op, const Chip &chip,
                                PatternRewriter &rewriter) const = 0;

  const Chip *fallback;
};

/// Extends narrow floats to f16 or bf16, and these to the result type.
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

  /// Returns the lanes of `in`, possibly padded, as f16 or bf16; null if
  /// integer arithmetic is as good.
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

/// Extends pairs of bf16, which are the upper halves of f32, directly in their
/// registers, with a shift and a mask. Otherwise, LLVM moves each bf16 to its
/// own register first.
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

/// Truncates an even number of f32 lanes to bytes with `cvt`, saturating.
///
/// PTX ISA, cvt: "the value converted from input a is stored in the upper 8
/// bits of d and the value converted from input b is stored in the lower 8
/// bits"; the same holds for halves of a byte. So the odd lane is a.
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

/// Truncates an even number of f16 lanes to bytes of an 8-bit format with
/// `cvt`, saturating: PTX ISA, cvt, "the value converted from the upper 16 bits
/// of input a is stored in the upper 8 bits of d".
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

/// Truncates to fp8, fp6 and fp4 with `cvt`, if the chip has it for the source
/// type, and otherwise from f32, to which a chip extends in one instruction.
struct TruncateOnChip : OnChip<arith::TruncFOp> {
  using OnChip::OnChip;

private:
  LogicalResult rewrite(arith::TruncFOp op, const Chip &chip,
                        PatternRewriter &rewriter) const override {
    FloatType from = getFloatLane(op.getIn().getType());
    FloatType to = getFloatLane(op.getType());
    if (!isNarrow(to) || !isWide(from))
      return rewriter.notifyMatchFailure(op, "not from wide to narrow");
    // `cvt` to f8E8M0FNU ignores the sign.
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

  /// Converts the operand to an f32 that rounds to the same narrow float.
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
