//===- Intrinsics.cpp - Intrinsics of the chip for the host ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathCalls.h"
#include "kvcache/Emulator/Math.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;
using llvm::APFloat;

static constexpr StringRef kPrefix = "llvm.nvvm.";

namespace {

/// The name of an intrinsic: `fma.rn.ftz.relu.f16x2` has the base `fma`.
class IntrinsicName {
public:
  explicit IntrinsicName(StringRef name) {
    name.consume_front(kPrefix);
    name.split(parts, '.');
  }

  StringRef base() const { return parts.front(); }
  bool has(StringRef part) const { return llvm::is_contained(parts, part); }
  /// Whether only these and types follow the base.
  bool hasOnly(ArrayRef<StringRef> known) const {
    constexpr StringRef types[] = {"f",      "d",   "f16", "f16x2", "bf16",
                                   "bf16x2", "f32", "f64", "v2f16", "v2bf16"};
    return llvm::all_of(ArrayRef(parts).drop_front(), [&](StringRef part) {
      return llvm::is_contained(known, part) || llvm::is_contained(types, part);
    });
  }
  ArrayRef<StringRef> getParts() const { return parts; }

private:
  SmallVector<StringRef> parts;
};

/// Builds arithmetic in place of an intrinsic, on scalars or vectors.
class ArithmeticBuilder {
public:
  ArithmeticBuilder(LLVM::CallIntrinsicOp op, const IntrinsicName &name)
      : name(name), builder(op), loc(op.getLoc()),
        type(op->getResult(0).getType()), operands(op.getArgs()) {}

  /// The result; null if the intrinsic is not known.
  Value build() {
    static constexpr StringRef kModifiers[] = {
        "rn", "approx", "full", "ftz", "sat", "relu", "nan", "xorsign", "abs"};
    if (!isFloat(type) || !name.hasOnly(kModifiers) ||
        llvm::any_of(operands,
                     [&](Value operand) { return operand.getType() != type; }))
      return {};
    if (name.has("ftz"))
      for (Value &operand : operands)
        operand = flush(operand);
    Value result = buildOperation();
    if (!result)
      return {};
    if (name.has("ftz"))
      result = flush(result);
    if (name.has("sat") || name.base() == "saturate")
      result = clampToOne(result);
    if (name.has("relu"))
      result = select(LLVM::FCmpPredicate::olt, result, constant(0),
                      constant(0), result);
    return result;
  }

private:
  static bool isFloat(Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  }

  template <typename OpTy> Value unary() {
    return operands.size() == 1
               ? OpTy::create(builder, loc, type, operands).getResult()
               : Value();
  }
  template <typename OpTy> Value binary() {
    return operands.size() == 2
               ? OpTy::create(builder, loc, type, operands).getResult()
               : Value();
  }
  template <typename OpTy> Value ternary() {
    return operands.size() == 3
               ? OpTy::create(builder, loc, type, operands).getResult()
               : Value();
  }

  Value constant(double number) {
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    TypedAttr value = builder.getFloatAttr(element, number);
    if (auto shaped = dyn_cast<ShapedType>(type))
      value = DenseElementsAttr::get(shaped, Attribute(value));
    return LLVM::ConstantOp::create(builder, loc, type, value);
  }

  Value select(LLVM::FCmpPredicate predicate, Value a, Value b, Value yes,
               Value no) {
    Value is = LLVM::FCmpOp::create(builder, loc, predicate, a, b);
    return LLVM::SelectOp::create(builder, loc, is, yes, no);
  }

  Value callIntrinsic(StringRef intrinsic, ValueRange values) {
    return LLVM::CallIntrinsicOp::create(
               builder, loc, type, builder.getStringAttr(intrinsic), values)
        ->getResult(0);
  }

  /// A number that is not normal becomes a zero of the same sign.
  Value flush(Value value) {
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    double least = APFloat::getSmallestNormalized(element.getFloatSemantics())
                       .convertToDouble();
    Value magnitude = LLVM::FAbsOp::create(builder, loc, type, value);
    Value zero =
        LLVM::CopySignOp::create(builder, loc, type, constant(0), value);
    return select(LLVM::FCmpPredicate::olt, magnitude, constant(least), zero,
                  value);
  }

  /// NaNs become 0: PTX ISA, the modifier .sat.
  Value clampToOne(Value value) {
    Value positive = select(LLVM::FCmpPredicate::ogt, value, constant(0), value,
                            constant(0));
    return select(LLVM::FCmpPredicate::ogt, positive, constant(1), constant(1),
                  positive);
  }

  Value reciprocal(Value value) {
    return LLVM::FDivOp::create(builder, loc, type, constant(1), value);
  }

  /// PTX ISA, min and max: the one that is no NaN, unless with .nan; with
  /// .xorsign.abs the magnitude, with the product of the signs.
  Value pick(bool isMax) {
    if (operands.size() != 2)
      return {};
    SmallVector<Value> values(operands);
    bool isOfMagnitudes = name.has("xorsign");
    if (isOfMagnitudes)
      for (Value &value : values)
        value = LLVM::FAbsOp::create(builder, loc, type, value);
    StringRef intrinsic = name.has("nan")
                              ? (isMax ? "llvm.maximum" : "llvm.minimum")
                              : (isMax ? "llvm.maximumnum" : "llvm.minimumnum");
    Value picked = callIntrinsic(intrinsic, values);
    if (!isOfMagnitudes)
      return picked;
    Value a =
        LLVM::CopySignOp::create(builder, loc, type, constant(1), operands[0]);
    Value b =
        LLVM::CopySignOp::create(builder, loc, type, constant(1), operands[1]);
    Value sign = LLVM::FMulOp::create(builder, loc, type, a, b);
    return LLVM::CopySignOp::create(builder, loc, type, picked, sign);
  }

  Value pickSmaller() { return pick(/*isMax=*/false); }
  Value pickLarger() { return pick(/*isMax=*/true); }
  Value keep() { return operands.size() == 1 ? operands[0] : Value(); }
  Value invert() { return operands.size() == 1 ? reciprocal(keep()) : Value(); }
  Value invertRoot() {
    Value root = unary<LLVM::SqrtOp>();
    return root ? reciprocal(root) : Value();
  }

  Value buildOperation() {
    using Builder = ArithmeticBuilder;
    using Build = Value (Builder::*)();
    auto build = llvm::StringSwitch<Build>(name.base())
                     .Case("add", &Builder::binary<LLVM::FAddOp>)
                     .Case("mul", &Builder::binary<LLVM::FMulOp>)
                     .Case("div", &Builder::binary<LLVM::FDivOp>)
                     .Case("fma", &Builder::ternary<LLVM::FMAOp>)
                     .Case("fmin", &Builder::pickSmaller)
                     .Case("fmax", &Builder::pickLarger)
                     .Case("ceil", &Builder::unary<LLVM::FCeilOp>)
                     .Case("floor", &Builder::unary<LLVM::FFloorOp>)
                     .Case("round", &Builder::unary<LLVM::RoundEvenOp>)
                     .Case("trunc", &Builder::unary<LLVM::FTruncOp>)
                     .Case("saturate", &Builder::keep)
                     .Case("fabs", &Builder::unary<LLVM::FAbsOp>)
                     .Case("neg", &Builder::unary<LLVM::FNegOp>)
                     .Case("ex2", &Builder::unary<LLVM::Exp2Op>)
                     .Case("lg2", &Builder::unary<LLVM::Log2Op>)
                     .Case("sin", &Builder::unary<LLVM::SinOp>)
                     .Case("cos", &Builder::unary<LLVM::CosOp>)
                     .Case("tanh", &Builder::unary<LLVM::TanhOp>)
                     .Case("sqrt", &Builder::unary<LLVM::SqrtOp>)
                     .Case("rcp", &Builder::invert)
                     .Case("rsqrt", &Builder::invertRoot)
                     .Default(nullptr);
    return build ? (this->*build)() : Value();
  }

  const IntrinsicName &name;
  OpBuilder builder;
  Location loc;
  Type type;
  SmallVector<Value> operands;
};

} // namespace

/// Whether it is an intrinsic of the chip, from numbers to numbers: a call by
/// name can have any types.
static bool isOfChip(LLVM::CallIntrinsicOp op) {
  auto isNumber = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return getElementTypeOrSelf(type).isIntOrFloat() &&
           !(vector && (vector.getRank() != 1 || vector.isScalable()));
  };
  return op.getIntrin().starts_with(kPrefix) && op->getNumResults() == 1 &&
         isNumber(op->getResult(0).getType()) && !op.getArgs().empty() &&
         llvm::all_of(op.getArgs().getTypes(), isNumber);
}

/// Whether the operands that there are have these types.
static bool hasOperands(LLVM::CallIntrinsicOp op, ArrayRef<Type> types) {
  return llvm::equal(op.getArgs().getTypes(), types);
}

/// Whether a value is in one register or in a part of one.
static bool isInRegister(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return (vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
                 : type.getIntOrFloatBitWidth()) <= 32;
}

static bool replace(LLVM::CallIntrinsicOp op, Value result) {
  if (!result)
    return false;
  op->getResult(0).replaceAllUsesWith(result);
  op.erase();
  return true;
}

bool kvcache::lowerArithmeticIntrinsic(LLVM::CallIntrinsicOp op,
                                       EmulatorCalls &calls) {
  if (!isOfChip(op))
    return false;
  IntrinsicName name(op.getIntrin());
  return replace(op, ArithmeticBuilder(op, name).build());
}

//===----------------------------------------------------------------------===//
// Between formats
//===----------------------------------------------------------------------===//

/// The KVCacheFormat that a part of a name ends in, such as `e4m3x2`.
static std::optional<uint32_t> getFormat(StringRef part) {
  part = part.rsplit('x').first;
  return llvm::StringSwitch<std::optional<uint32_t>>(part)
      .Case("f16", KVCacheFormatF16)
      .Case("bf16", KVCacheFormatBF16)
      .Case("e4m3", KVCacheFormatE4M3)
      .Case("e5m2", KVCacheFormatE5M2)
      .Case("e2m3", KVCacheFormatE2M3)
      .Case("e3m2", KVCacheFormatE3M2)
      .Case("e2m1", KVCacheFormatE2M1)
      .Case("ue8m0", KVCacheFormatE8M0)
      .Default(std::nullopt);
}

/// The flags of a conversion of floats; none if a part is not known.
static std::optional<uint32_t> getFlags(ArrayRef<StringRef> parts) {
  uint32_t flags = KVCacheConvertNearestEven;
  for (StringRef part : parts) {
    std::optional<uint32_t> flag =
        llvm::StringSwitch<std::optional<uint32_t>>(part)
            .Case("rn", KVCacheConvertNearestEven)
            .Case("rna", KVCacheConvertNearestAway)
            .Case("rz", KVCacheConvertZero)
            .Case("rp", KVCacheConvertUp)
            .Case("rs", KVCacheConvertStochastic)
            .Case("relu", KVCacheConvertRelu)
            .Case("satfinite", KVCacheConvertSaturate)
            .Default(std::nullopt);
    if (!flag)
      return std::nullopt;
    flags |= *flag;
  }
  return flags;
}

/// `ff2bf16x2.rn`, `f2f16.rn`, `f2tf32.rna`: from f32 to wider formats.
static bool lowerFromF32(LLVM::CallIntrinsicOp op, const IntrinsicName &name,
                         EmulatorCalls &calls) {
  auto [from, to] = name.base().split('2');
  std::optional<uint32_t> flags = getFlags(name.getParts().drop_front());
  Type f32 = calls.f32;
  bool isPair = hasOperands(op, {f32, f32}),
       isRandom = hasOperands(op, {f32, f32, calls.i32});
  if (!flags || !isInRegister(op->getResult(0).getType()) ||
      !(from == "f" ? hasOperands(op, f32)
                    : from == "ff" && (isPair || isRandom)))
    return false;
  OperandRange operands = op.getArgs();
  if (from == "f" && to == "tf32") {
    calls.replaceByCall(op, "kvcacheEmulatorConvertTF32",
                        {operands[0], calls.getI32(op, *flags)});
    return true;
  }
  std::optional<uint32_t> format = getFormat(to);
  if (!format)
    return false;
  if (from == "ff")
    replaceByConvertF32x2(op, operands[0], operands[1],
                          isRandom ? operands[2] : Value(), *format, *flags,
                          calls);
  else // The lower half of a pair.
    replaceByConvertF32x2(op, operands[0], operands[0], Value(), *format,
                          *flags, calls);
  return true;
}

/// `ff.to.e4m3x2.rn`, `f32x4.to.e2m1x4.rs.satfinite`, `e4m3x2.to.f16x2.rn`.
static bool lowerPacked(LLVM::CallIntrinsicOp op, const IntrinsicName &name,
                        EmulatorCalls &calls) {
  ArrayRef<StringRef> parts = name.getParts();
  if (parts.size() < 3 || parts[1] != "to")
    return false;
  std::optional<uint32_t> format = getFormat(parts[2]);
  std::optional<uint32_t> flags = getFlags(parts.drop_front(3));
  if (!format || !flags || !isInRegister(op->getResult(0).getType()))
    return false;
  // From wider formats to those of 8 bits it always saturates, except to E8M0.
  bool isWide = *format == KVCacheFormatF16 || *format == KVCacheFormatBF16;
  if (!isWide && *format != KVCacheFormatE8M0)
    *flags |= KVCacheConvertSaturate;
  OperandRange operands = op.getArgs();
  Type f32 = calls.f32, f32x4 = VectorType::get(4, f32);
  if (parts[0] == "ff" && hasOperands(op, {f32, f32}))
    replaceByConvertF32x2(op, operands[0], operands[1], Value(), *format,
                          *flags, calls);
  else if (parts[0] == "f32x4" && hasOperands(op, {f32x4, calls.i32}))
    replaceByConvertF32x4(op, operands[0], operands[1], *format, *flags, calls);
  else if (std::optional<uint32_t> from = getFormat(parts[0]);
           from && operands.size() == 1 && isInRegister(operands[0].getType()))
    replaceByConvertPair(op, operands[0], *from, *format, *flags, calls);
  else
    return false;
  return true;
}

/// PTX ISA, "cvt": NaN becomes 0, or the integer with the upper bit only where
/// the source or the result has 64 bits.
static Value selectNaN(LLVM::CallIntrinsicOp op, Value number,
                       Value converted) {
  auto type = cast<IntegerType>(converted.getType());
  constexpr unsigned wide = 64;
  if (type.getWidth() < wide && number.getType().getIntOrFloatBitWidth() < wide)
    return converted;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value isNaN = LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate::uno,
                                     number, number);
  Value upperBit = LLVM::ConstantOp::create(
      builder, loc, type,
      builder.getIntegerAttr(type, APInt::getSignMask(type.getWidth())));
  return LLVM::SelectOp::create(builder, loc, isNaN, upperBit, converted);
}

/// `f2i.rz`, `d2ull.rn`: to integers, which saturates.
static bool lowerToInteger(LLVM::CallIntrinsicOp op,
                           const IntrinsicName &name) {
  auto [from, to] = name.base().split('2');
  bool isUnsigned = to.consume_front("u");
  Type operandType = op.getArgs()[0].getType();
  if ((from != "f" && from != "d") || (to != "i" && to != "ll") ||
      !isa<FloatType>(operandType) || op.getArgs().size() != 1 ||
      !isa<IntegerType>(op->getResult(0).getType()))
    return false;
  StringRef round = llvm::StringSwitch<StringRef>(name.getParts()[1])
                        .Case("rn", "llvm.roundeven")
                        .Case("rz", "llvm.trunc")
                        .Case("rm", "llvm.floor")
                        .Case("rp", "llvm.ceil")
                        .Default("");
  if (round.empty())
    return false;
  // A number that is not normal rounds like zero, unless away from it.
  if (name.has("ftz") && !name.has("rn") && !name.has("rz"))
    return false;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value rounded =
      LLVM::CallIntrinsicOp::create(builder, loc, operandType,
                                    builder.getStringAttr(round), op.getArgs())
          ->getResult(0);
  StringRef convert = isUnsigned ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  Value converted =
      LLVM::CallIntrinsicOp::create(builder, loc, op->getResult(0).getType(),
                                    builder.getStringAttr(convert), rounded)
          ->getResult(0);
  return replace(op, selectNaN(op, op.getArgs()[0], converted));
}

/// `i2f.rn`, `ull2d.rn`, `d2f.rn`.
static bool lowerToFloat(LLVM::CallIntrinsicOp op, const IntrinsicName &name) {
  auto [from, to] = name.base().split('2');
  bool isUnsigned = from.consume_front("u");
  if ((to != "f" && to != "d") || name.getParts().size() != 2 ||
      !name.has("rn") || op.getArgs().size() != 1)
    return false;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Type type = op->getResult(0).getType();
  Value operand = op.getArgs()[0];
  if (from == "d" && to == "f" && !isUnsigned)
    return replace(op, LLVM::FPTruncOp::create(builder, loc, type, operand));
  if (from != "i" && from != "ll")
    return false;
  return replace(
      op,
      isUnsigned
          ? LLVM::UIToFPOp::create(builder, loc, type, operand).getResult()
          : LLVM::SIToFPOp::create(builder, loc, type, operand).getResult());
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// `prmt`, `prmt.f4e`.
static bool lowerPermute(LLVM::CallIntrinsicOp op, const IntrinsicName &name,
                         EmulatorCalls &calls) {
  if (name.base() != "prmt")
    return false;
  constexpr StringRef modes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  StringRef mode = name.getParts().size() > 1 ? name.getParts()[1] : "";
  const auto *found = llvm::find(modes, mode);
  OperandRange operands = op.getArgs();
  if (found == std::end(modes) || operands.size() < 2 || operands.size() > 3 ||
      op->getResult(0).getType() != calls.i32 ||
      !llvm::all_of(operands.getTypes(),
                    [&](Type type) { return type == calls.i32; }))
    return false;
  Value high = operands.size() == 3 ? operands[1] : calls.getI32(op, 0);
  calls.replaceByCall(op, "kvcacheEmulatorPermute",
                      {operands.front(), high, operands.back(),
                       calls.getI32(op, found - std::begin(modes))});
  return true;
}

/// `mulhi.i`, `mulhi.ull`: the upper half of a product.
static bool lowerMulHigh(LLVM::CallIntrinsicOp op, const IntrinsicName &name) {
  Type type = op->getResult(0).getType();
  if (name.base() != "mulhi" || name.getParts().size() != 2 ||
      !isa<IntegerType>(type) || !hasOperands(op, {type, type}))
    return false;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  unsigned width = type.getIntOrFloatBitWidth();
  Type wide = builder.getIntegerType(2 * width);
  bool isUnsigned = name.getParts()[1].starts_with("u");
  auto extend = [&](Value value) -> Value {
    if (isUnsigned)
      return LLVM::ZExtOp::create(builder, loc, wide, value);
    return LLVM::SExtOp::create(builder, loc, wide, value);
  };
  Value product = LLVM::MulOp::create(builder, loc, extend(op.getArgs()[0]),
                                      extend(op.getArgs()[1]));
  Value shift = LLVM::ConstantOp::create(builder, loc, wide, width);
  Value upper = LLVM::LShrOp::create(builder, loc, product, shift);
  return replace(op, LLVM::TruncOp::create(builder, loc, type, upper));
}

bool kvcache::lowerConversionIntrinsic(LLVM::CallIntrinsicOp op,
                                       EmulatorCalls &calls) {
  if (!isOfChip(op))
    return false;
  IntrinsicName name(op.getIntrin());
  return lowerFromF32(op, name, calls) || lowerPacked(op, name, calls) ||
         (name.getParts().size() > 1 &&
          (lowerToInteger(op, name) || lowerToFloat(op, name))) ||
         lowerPermute(op, name, calls) || lowerMulHigh(op, name);
}
