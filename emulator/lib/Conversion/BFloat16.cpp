//===- BFloat16.cpp - bf16 as bits ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First every op that computes on bf16 is made again on f32, between ops that
// extend and round in integers; then the type is replaced everywhere.
//
// Rounding to f32 first does no harm to sums, products, quotients and square
// roots, since f32 has more than twice as many bits (Figueroa, "When is double
// rounding innocuous?", 1995). Where it would, numbers are rounded to odd
// before: to a number whose last bit is set, unless they are exact.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::kvcache;

static bool isBF16(Type type) { return getElementTypeOrSelf(type).isBF16(); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace {

/// Builds arithmetic at one place, on scalars or vectors of any length.
class BitBuilder {
public:
  explicit BitBuilder(Operation *op) : builder(op), loc(op->getLoc()) {}

  OpBuilder builder;
  Location loc;

  /// A type with the shape of `type`.
  static Type withElement(Type type, Type element) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.clone(element) : element;
  }
  Type asF32(Type type) { return withElement(type, builder.getF32Type()); }
  Type asF64(Type type) { return withElement(type, builder.getF64Type()); }
  Type asInt(Type type, unsigned width) {
    return withElement(type, builder.getIntegerType(width));
  }

  Value constant(Type type, uint64_t bits) {
    auto element = cast<IntegerType>(getElementTypeOrSelf(type));
    TypedAttr value =
        builder.getIntegerAttr(element, APInt(element.getWidth(), bits));
    if (auto shaped = dyn_cast<ShapedType>(type))
      value = DenseElementsAttr::get(shaped, Attribute(value));
    return LLVM::ConstantOp::create(builder, loc, type, value);
  }

  template <typename OpTy> Value op(Value a, Value b) {
    return OpTy::create(builder, loc, a, b);
  }
  template <typename OpTy> Value op(Value a, uint64_t b) {
    return OpTy::create(builder, loc, a, constant(a.getType(), b));
  }
  template <typename OpTy> Value convert(Type type, Value value) {
    return OpTy::create(builder, loc, type, value);
  }
  Value compare(LLVM::ICmpPredicate predicate, Value a, uint64_t b) {
    return LLVM::ICmpOp::create(builder, loc, predicate, a,
                                constant(a.getType(), b));
  }
  Value select(Value is, Value yes, Value no) {
    return LLVM::SelectOp::create(builder, loc, is, yes, no);
  }

  /// bf16 to f32, which is exact.
  Value extend(Value value) {
    Type words = asInt(value.getType(), 32);
    Value bits = convert<LLVM::ZExtOp>(
        words, convert<LLVM::BitcastOp>(asInt(value.getType(), 16), value));
    return convert<LLVM::BitcastOp>(asF32(value.getType()),
                                    op<LLVM::ShlOp>(bits, 16));
  }

  /// f32 to bf16, to nearest even. NaNs keep their upper bits and are quiet.
  Value truncate(Value value) {
    Type words = asInt(value.getType(), 32);
    Value bits = convert<LLVM::BitcastOp>(words, value);
    Value odd = op<LLVM::AndOp>(op<LLVM::LShrOp>(bits, 16), 1);
    Value rounded = op<LLVM::AddOp>(bits, op<LLVM::AddOp>(odd, 0x7fff));
    Value magnitude = op<LLVM::AndOp>(bits, 0x7fffffff);
    Value isNaN = compare(LLVM::ICmpPredicate::ugt, magnitude, 0x7f800000);
    Value quiet = op<LLVM::OrOp>(bits, 0x00400000);
    Value upper = op<LLVM::LShrOp>(select(isNaN, quiet, rounded), 16);
    Value halves = convert<LLVM::TruncOp>(asInt(value.getType(), 16), upper);
    return convert<LLVM::BitcastOp>(
        withElement(value.getType(), builder.getBF16Type()), halves);
  }

  /// f64 to bf16, rounded once: rounded to odd, an f32 is still on the same
  /// side of every number of bf16 and of every half between two.
  Value truncateF64(Value value) {
    Type words = asInt(value.getType(), 32);
    Value single = convert<LLVM::FPTruncOp>(asF32(value.getType()), value);
    Value back = convert<LLVM::FPExtOp>(value.getType(), single);
    Value bits = convert<LLVM::BitcastOp>(words, single);
    // Even bits of an inexact f32, not a NaN: the odd neighbour is on the side
    // on which the f64 is. Magnitudes have the order of their bits.
    Value isInexact = fcompare(LLVM::FCmpPredicate::one, back, value);
    Value isEven =
        compare(LLVM::ICmpPredicate::eq, op<LLVM::AndOp>(bits, 1), 0);
    Value isTooSmall =
        fcompare(LLVM::FCmpPredicate::olt, magnitude(back), magnitude(value));
    Value neighbour =
        select(isTooSmall, op<LLVM::AddOp>(bits, 1), op<LLVM::SubOp>(bits, 1));
    Value isWrong = op<LLVM::AndOp>(isInexact, isEven);
    Value odd = select(isWrong, neighbour, bits);
    return truncate(convert<LLVM::BitcastOp>(single.getType(), odd));
  }

  /// a * b + c, of f64 with the bits of bf16 numbers, rounded to odd. The
  /// product is exact.
  Value fuseToOdd(Value a, Value b, Value c) {
    Type longs = asInt(a.getType(), 64);
    Value product = op<LLVM::FMulOp>(a, b);
    Value sum = op<LLVM::FAddOp>(product, c);
    // What the sum lacks, exactly (Knuth).
    Value virtualC = op<LLVM::FSubOp>(sum, product);
    Value virtualProduct = op<LLVM::FSubOp>(sum, virtualC);
    Value error = op<LLVM::FAddOp>(op<LLVM::FSubOp>(product, virtualProduct),
                                   op<LLVM::FSubOp>(c, virtualC));
    Value bits = convert<LLVM::BitcastOp>(longs, sum);
    Value zero = LLVM::ConstantOp::create(builder, loc, a.getType(),
                                          getZero(a.getType()));
    Value isInexact = fcompare(LLVM::FCmpPredicate::one, error, zero);
    Value isEven =
        compare(LLVM::ICmpPredicate::eq, op<LLVM::AndOp>(bits, 1), 0);
    Value isNegative = fcompare(LLVM::FCmpPredicate::olt, sum, zero);
    Value isErrorNegative = fcompare(LLVM::FCmpPredicate::olt, error, zero);
    Value isTooLarge = op<LLVM::XOrOp>(isNegative, isErrorNegative);
    Value neighbour =
        select(isTooLarge, op<LLVM::SubOp>(bits, 1), op<LLVM::AddOp>(bits, 1));
    Value isWrong = op<LLVM::AndOp>(isInexact, isEven);
    return convert<LLVM::BitcastOp>(sum.getType(),
                                    select(isWrong, neighbour, bits));
  }

  Value fcompare(LLVM::FCmpPredicate predicate, Value a, Value b) {
    return LLVM::FCmpOp::create(builder, loc, predicate, a, b);
  }
  Value magnitude(Value value) {
    return LLVM::FAbsOp::create(builder, loc, value.getType(), value);
  }

private:
  TypedAttr getZero(Type type) { return builder.getZeroAttr(type); }
};

} // namespace

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Ops that only change bits: a change of the sign is no arithmetic.
static Value lowerSign(Operation *op) {
  BitBuilder b(op);
  auto bitsOf = [&](unsigned operand) {
    Value value = op->getOperand(operand);
    return b.convert<LLVM::BitcastOp>(b.asInt(value.getType(), 16), value);
  };
  constexpr uint64_t sign = 0x8000, magnitude = 0x7fff;
  Value bits;
  if (isa<LLVM::FNegOp>(op))
    bits = b.op<LLVM::XOrOp>(bitsOf(0), sign);
  else if (op->getNumOperands() == 1) // the magnitude
    bits = b.op<LLVM::AndOp>(bitsOf(0), magnitude);
  else
    bits = b.op<LLVM::OrOp>(b.op<LLVM::AndOp>(bitsOf(0), magnitude),
                            b.op<LLVM::AndOp>(bitsOf(1), sign));
  return b.convert<LLVM::BitcastOp>(op->getResult(0).getType(), bits);
}

static Value lowerExtension(LLVM::FPExtOp op) {
  BitBuilder b(op);
  Value single = b.extend(op.getArg());
  return single.getType() == op.getType()
             ? single
             : b.convert<LLVM::FPExtOp>(op.getType(), single);
}

static Value lowerTruncation(LLVM::FPTruncOp op) {
  BitBuilder b(op);
  Value value = op.getArg();
  return getElementTypeOrSelf(value.getType()).isF64() ? b.truncateF64(value)
                                                       : b.truncate(value);
}

/// From integers: f64 is exact for those of 32 bits. Wider ones keep, above 52
/// bits, their upper bits, the last of them set if a lower one was.
static Value lowerFromInteger(Operation *op) {
  BitBuilder b(op);
  bool isSigned = isa<LLVM::SIToFPOp>(op);
  Value value = op->getOperand(0);
  if (getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() > 32) {
    constexpr unsigned low = 12;
    Value lost = b.op<LLVM::AndOp>(value, (1u << low) - 1);
    Value jammed =
        b.op<LLVM::OrOp>(b.op<LLVM::XOrOp>(value, lost), uint64_t{1} << low);
    Value top = isSigned ? b.op<LLVM::AShrOp>(value, 64 - low)
                         : b.op<LLVM::LShrOp>(value, 64 - low);
    // Exact if there is nothing above the 52 bits but the sign.
    Value isSmall = b.compare(LLVM::ICmpPredicate::ule,
                              b.op<LLVM::AddOp>(top, isSigned), isSigned);
    Value isExact =
        b.op<LLVM::OrOp>(isSmall, b.compare(LLVM::ICmpPredicate::eq, lost, 0));
    value = b.select(isExact, value, jammed);
  }
  Type wide = b.asF64(op->getResult(0).getType());
  return b.truncateF64(isSigned ? b.convert<LLVM::SIToFPOp>(wide, value)
                                : b.convert<LLVM::UIToFPOp>(wide, value));
}

/// With one rounding.
static Value lowerFusedMultiplyAdd(Operation *op) {
  BitBuilder b(op);
  Type wide = b.asF64(op->getResult(0).getType());
  SmallVector<Value> values;
  for (Value operand : op->getOperands())
    values.push_back(b.convert<LLVM::FPExtOp>(wide, b.extend(operand)));
  return b.truncateF64(b.fuseToOdd(values[0], values[1], values[2]));
}

/// Sums and products of the lanes of a vector, one after another.
template <typename OpTy> static Value lowerReduction(Operation *op) {
  BitBuilder b(op);
  Value result = op->getOperand(0), vector = op->getOperand(1);
  Type i32 = b.builder.getI32Type();
  for (int64_t lane :
       llvm::seq(cast<VectorType>(vector.getType()).getNumElements())) {
    Value element = LLVM::ExtractElementOp::create(b.builder, b.loc, vector,
                                                   b.constant(i32, lane));
    result = b.truncate(b.op<OpTy>(b.extend(result), b.extend(element)));
  }
  return result;
}

/// Makes any other op again, with f32 for bf16.
static void lowerOnF32(Operation *op) {
  BitBuilder b(op);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (isBF16(operand.getType()))
      mapping.map(operand, b.extend(operand));
  Operation *wide = b.builder.clone(*op, mapping);
  for (auto [before, after] : llvm::zip(op->getResults(), wide->getResults())) {
    Value value = after;
    if (isBF16(after.getType())) {
      after.setType(b.asF32(after.getType()));
      value = b.truncate(value);
    }
    before.replaceAllUsesWith(value);
  }
  op->erase();
}

/// Whether an op that has bf16 computes on it.
static bool computes(Operation *op) {
  if (isa<LLVM::SelectOp, LLVM::CallOp, LLVM::InvokeOp>(op))
    return false;
  if (isa<LLVM::FastmathFlagsInterface, LLVM::SIToFPOp, LLVM::UIToFPOp,
          LLVM::FPToSIOp, LLVM::FPToUIOp, LLVM::FPExtOp, LLVM::FPTruncOp,
          LLVM::IsFPClass, LLVM::LrintOp, LLVM::LlrintOp, LLVM::LroundOp,
          LLVM::LlroundOp>(op))
    return true;
  return isa<LLVM::CallIntrinsicOp>(op);
}

static Value lowerSpecially(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<LLVM::FNegOp, LLVM::FAbsOp, LLVM::CopySignOp>(
          [](Operation *op) { return lowerSign(op); })
      .Case([](LLVM::FPExtOp op) { return lowerExtension(op); })
      .Case([](LLVM::FPTruncOp op) { return lowerTruncation(op); })
      .Case<LLVM::SIToFPOp, LLVM::UIToFPOp>(
          [](Operation *op) { return lowerFromInteger(op); })
      .Case<LLVM::FMAOp, LLVM::FMulAddOp>(
          [](Operation *op) { return lowerFusedMultiplyAdd(op); })
      .Case([](LLVM::vector_reduce_fadd op) {
        return lowerReduction<LLVM::FAddOp>(op);
      })
      .Case([](LLVM::vector_reduce_fmul op) {
        return lowerReduction<LLVM::FMulOp>(op);
      })
      .Case([](LLVM::CallIntrinsicOp op) {
        // A call may have any operands: what is wrong stays wrong.
        StringRef name = op.getIntrin();
        unsigned operands = op.getArgs().size();
        if ((name == "llvm.fabs" && operands == 1) ||
            (name == "llvm.copysign" && operands == 2))
          return lowerSign(op);
        return (name == "llvm.fma" || name == "llvm.fmuladd") && operands == 3
                   ? lowerFusedMultiplyAdd(op)
                   : Value();
      })
      .Default(Value());
}

static void lowerArithmetic(Operation *op) {
  if (Value value = lowerSpecially(op)) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  } else {
    lowerOnF32(op);
  }
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Replaces the type everywhere.
static void replaceType(gpu::GPUModuleOp module) {
  AttrTypeReplacer replacer;
  MLIRContext *context = module.getContext();
  Type bits = IntegerType::get(context, 16);
  replacer.addReplacement([=](BFloat16Type) -> Type { return bits; });
  replacer.addReplacement([=](FloatAttr attr) -> std::optional<Attribute> {
    if (!attr.getType().isBF16())
      return std::nullopt;
    return IntegerAttr::get(bits, attr.getValue().bitcastToAPInt());
  });
  replacer.addReplacement(
      [=](DenseElementsAttr attr) -> std::optional<Attribute> {
        if (!attr.getElementType().isBF16())
          return std::nullopt;
        return attr.bitcast(bits);
      });
  // A structure with a name keeps its fields: what has others is another one.
  replacer.addReplacement(
      [&](LLVM::LLVMStructType type) -> std::optional<Type> {
        if (!type.isIdentified() || type.isOpaque())
          return std::nullopt;
        SmallVector<Type> fields;
        for (Type field : type.getBody())
          fields.push_back(replacer.replace(field));
        if (llvm::equal(fields, type.getBody()))
          return type;
        return LLVM::LLVMStructType::getLiteral(context, fields,
                                                type.isPacked());
      });
  module.walk([&](Operation *op) {
    replacer.replaceElementsIn(op, /*replaceAttrs=*/true,
                               /*replaceLocs=*/false, /*replaceTypes=*/true);
  });
  module.walk([](LLVM::BitcastOp op) {
    if (op.getArg().getType() != op.getType())
      return;
    op.replaceAllUsesWith(op.getArg());
    op.erase();
  });
}

LogicalResult kvcache::lowerBFloat16(gpu::GPUModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    auto hasBF16 = [](TypeRange types) { return llvm::any_of(types, isBF16); };
    if ((hasBF16(op->getOperandTypes()) || hasBF16(op->getResultTypes())) &&
        computes(op))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    lowerArithmetic(op);
  replaceType(module);
  return success();
}
