//===- Shadows.cpp - Shadows of values ------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules are those of MemorySanitizer (Stepanov and Serebryany,
// "MemorySanitizer: fast detector of uninitialized memory use in C++", 2015):
// exact to the bit for what moves bits and for `and` and `or`, otherwise a
// result is poisoned if an operand is.
//
//===----------------------------------------------------------------------===//

#include "Shadows.h"
#include "kvcache/Emulator/ABI.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

static Type getScalarType(Type type) {
  MLIRContext *context = type.getContext();
  if (isa<LLVM::LLVMPointerType>(type))
    return IntegerType::get(context, 64);
  if (type.isIntOrFloat())
    return IntegerType::get(context, type.getIntOrFloatBitWidth());
  return {};
}

Type ShadowBuilder::getType(Type type) {
  if (auto vector = dyn_cast<VectorType>(type)) {
    Type element = getScalarType(vector.getElementType());
    bool isFixed = vector.getRank() == 1 && !vector.isScalable();
    return isFixed && element ? vector.clone(element) : Type();
  }
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    Type element = getType(array.getElementType());
    return element ? LLVM::LLVMArrayType::get(element, array.getNumElements())
                   : Type();
  }
  auto structure = dyn_cast<LLVM::LLVMStructType>(type);
  if (!structure)
    return getScalarType(type);
  if (structure.isOpaque())
    return {};
  SmallVector<Type> fields;
  for (Type field : structure.getBody())
    fields.push_back(getType(field));
  return llvm::is_contained(fields, Type())
             ? Type()
             : LLVM::LLVMStructType::getLiteral(type.getContext(), fields,
                                                structure.isPacked());
}

bool ShadowBuilder::hasPlainBytes(Type type, const DataLayout &layout) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector && !isa<IntegerType>(type))
    return false;
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  return width >= 8 && llvm::isPowerOf2_32(width) &&
         layout.getTypeSize(type) <= KVCachePoisonBytes;
}

/// The parts of a structure or an array; none for other types.
static SmallVector<Type> getParts(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return SmallVector<Type>(array.getNumElements(), array.getElementType());
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type))
    return SmallVector<Type>(structure.getBody());
  return {};
}

static bool isAggregate(Type type) {
  return isa<LLVM::LLVMArrayType, LLVM::LLVMStructType>(type);
}

static unsigned getWidth(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
                : type.getIntOrFloatBitWidth();
}

/// Whether a vector has more bits than a register of the host.
static bool isLarge(Type type) {
  constexpr unsigned registerBits = 64;
  return isa<VectorType>(type) && getWidth(type) > registerBits;
}

Value ShadowBuilder::bitcast(Type type, Value bits) {
  return bits.getType() == type ? bits : create<LLVM::BitcastOp>(type, bits);
}

Value ShadowBuilder::toInteger(Value bits) {
  return bitcast(builder.getIntegerType(getWidth(bits.getType())), bits);
}

Value ShadowBuilder::isNotZero(Value integers) {
  return create<LLVM::ICmpOp>(LLVM::ICmpPredicate::ne, integers,
                              zero(integers.getType()));
}

Value ShadowBuilder::any(Value bits) {
  if (!isAggregate(bits.getType())) {
    // No integers of thousands of bits.
    Value integer = isLarge(bits.getType())
                        ? create<LLVM::vector_reduce_or>(
                              getElementTypeOrSelf(bits.getType()), bits)
                        : toInteger(bits);
    return integer.getType().isInteger(1) ? integer : isNotZero(integer);
  }
  Value result;
  for (int64_t index : llvm::seq<int64_t>(getParts(bits.getType()).size())) {
    Value part = any(create<LLVM::ExtractValueOp>(bits, index));
    result = result ? create<LLVM::OrOp>(result, part) : part;
  }
  return result ? result : zero(builder.getI1Type());
}

Value ShadowBuilder::fill(Type type, Value condition) {
  if (isLarge(type)) {
    auto vector = cast<VectorType>(type);
    Value first = create<LLVM::InsertElementOp>(
        zero(type), fill(vector.getElementType(), condition),
        zero(builder.getI32Type()));
    SmallVector<int32_t> firsts(vector.getNumElements(), 0);
    return create<LLVM::ShuffleVectorOp>(first, first, firsts);
  }
  if (!isAggregate(type)) {
    Type integer = builder.getIntegerType(getWidth(type));
    if (condition.getType() != integer)
      condition = create<LLVM::SExtOp>(integer, condition);
    return bitcast(type, condition);
  }
  Value result = zero(type);
  for (auto [index, part] : llvm::enumerate(getParts(type)))
    result = create<LLVM::InsertValueOp>(result, fill(part, condition),
                                         static_cast<int64_t>(index));
  return result;
}

Value ShadowBuilder::fillParts(Type type, Value bits, unsigned count) {
  auto split = [&](Type whole) {
    return VectorType::get(count,
                           builder.getIntegerType(getWidth(whole) / count));
  };
  Value parts = isNotZero(bitcast(split(bits.getType()), toInteger(bits)));
  Type wide = split(type);
  if (!getElementTypeOrSelf(wide).isInteger(1))
    parts = create<LLVM::SExtOp>(wide, parts);
  return bitcast(type, toInteger(parts));
}

Value ShadowBuilder::mixOrigins(Shadow first, Shadow second) {
  if (!first || !second)
    return first ? first.origin : second.origin;
  if (first.origin == second.origin)
    return first.origin;
  return create<LLVM::SelectOp>(any(second.bits), second.origin, first.origin);
}

Value ShadowBuilder::getOriginIfAny(Shadow shadow) {
  return create<LLVM::SelectOp>(any(shadow.bits), shadow.origin,
                                zero(builder.getI32Type()));
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {

/// Builds the shadow of one op's result.
class Rule {
public:
  Rule(Operation *op, ArrayRef<Shadow> operands)
      : op(op), operands(operands), b(op),
        type(ShadowBuilder::getType(op->getResult(0).getType())) {}

  Shadow build() {
    Value origin;
    Shadow all;
    for (Shadow operand : operands)
      if (operand)
        all = {operand.bits, origin = b.mixOrigins(all, operand)};
    Value bits =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case<LLVM::AndOp, LLVM::OrOp>(
                [&](Operation *) { return buildMask(); })
            .Case([&](LLVM::XOrOp) {
              return b.create<LLVM::OrOp>(getBits(0), getBits(1));
            })
            .Case<LLVM::TruncOp, LLVM::ZExtOp, LLVM::SExtOp, LLVM::BitcastOp>(
                [&](auto op) { return move(op); })
            .Case([&](LLVM::FreezeOp) { return getBits(0); })
            .Case<LLVM::ShlOp, LLVM::LShrOp, LLVM::AShrOp,
                  LLVM::ExtractElementOp, LLVM::InsertElementOp,
                  LLVM::ShuffleVectorOp, LLVM::ExtractValueOp,
                  LLVM::InsertValueOp, NVVM::PermuteOp>(
                [&](auto op) { return repeat(op); })
            .Case([&](LLVM::SelectOp op) {
              origin = getSelectedOrigin(op);
              return buildSelect(op);
            })
            .Default([&](Operation *) { return buildConversion(); });
    return {bits ? bits : buildAny(), origin};
  }

private:
  Value getBits(unsigned operand) {
    if (operands[operand])
      return operands[operand].bits;
    return b.zero(ShadowBuilder::getType(op->getOperand(operand).getType()));
  }

  /// A bit that is not poisoned and decides the result clears it: 0 of `and`,
  /// 1 of `or`.
  Value buildMask() {
    auto deciding = [&](unsigned operand) -> Value {
      Value value = op->getOperand(operand);
      if (isa<LLVM::AndOp>(op))
        return value;
      return b.create<LLVM::XOrOp>(value, getOnes(value.getType()));
    };
    Value result;
    auto add = [&](Value x, Value y) {
      Value both = b.create<LLVM::AndOp>(x, y);
      result = result ? b.create<LLVM::OrOp>(result, both) : both;
    };
    if (operands[0] && operands[1])
      add(operands[0].bits, operands[1].bits);
    for (unsigned operand : {0, 1})
      if (operands[operand])
        add(operands[operand].bits, deciding(1 - operand));
    return result;
  }

  Value getOnes(Type integers) {
    auto element = cast<IntegerType>(getElementTypeOrSelf(integers));
    TypedAttr ones =
        IntegerAttr::get(element, APInt::getAllOnes(element.getWidth()));
    if (auto vector = dyn_cast<VectorType>(integers))
      ones = DenseElementsAttr::get(vector, Attribute(ones));
    return b.create<LLVM::ConstantOp>(integers, ones);
  }

  /// Applies the op to the bits. The sign is extended like any bit.
  template <typename OpTy> Value move(OpTy) {
    Value bits = getBits(0);
    if (isa<LLVM::BitcastOp>(op))
      return b.bitcast(type, bits);
    return b.create<OpTy>(type, bits);
  }

  /// The op itself, on shadows in place of those operands that it moves; null
  /// if others are poisoned, which say where to.
  template <typename OpTy> Value repeat(OpTy) {
    unsigned numMoved = isa<LLVM::ShlOp, LLVM::LShrOp, LLVM::AShrOp,
                            LLVM::ExtractElementOp, LLVM::ExtractValueOp>(op)
                            ? 1
                        : isa<NVVM::PermuteOp>(op) ? op->getNumOperands() - 1
                                                   : 2;
    SmallVector<Value> values(op->getOperands());
    for (auto [index, value] : llvm::enumerate(values))
      if (index < numMoved)
        value = getBits(index);
      else if (operands[index])
        return {};
    Operation *repeated = b.builder.clone(*op);
    repeated->setOperands(values);
    repeated->getResult(0).setType(type);
    // What holds for values doesn't for shadows.
    if (auto flags = dyn_cast<LLVM::IntegerOverflowFlagsInterface>(repeated))
      flags.setOverflowFlags(LLVM::IntegerOverflowFlags::none);
    if (auto exact = dyn_cast<LLVM::ExactFlagInterface>(repeated))
      exact.setIsExact(false);
    return repeated->getResult(0);
  }

  Value buildSelect(LLVM::SelectOp select) {
    Value arm =
        b.create<LLVM::SelectOp>(select.getCondition(), getBits(1), getBits(2));
    if (!operands[0])
      return arm;
    Value condition = operands[0].bits;
    bool isByLane = isa<VectorType>(condition.getType());
    Value unknown = !isByLane ? b.fill(type, condition)
                    : getElementTypeOrSelf(type).isInteger(1)
                        ? condition
                        : b.create<LLVM::SExtOp>(type, condition);
    return isAggregate(type) ? b.create<LLVM::SelectOp>(condition, unknown, arm)
                             : b.create<LLVM::OrOp>(unknown, arm);
  }

  Value getSelectedOrigin(LLVM::SelectOp select) {
    Shadow yes = operands[1], no = operands[2], mixed;
    if (isa<VectorType>(select.getCondition().getType())) {
      mixed = {yes ? yes.bits : no.bits,
               yes || no ? b.mixOrigins(yes, no) : Value()};
    } else if (yes || no) {
      Value none = b.zero(b.builder.getI32Type());
      mixed = {yes ? yes.bits : no.bits,
               b.create<LLVM::SelectOp>(select.getCondition(),
                                        yes ? yes.origin : none,
                                        no ? no.origin : none)};
    }
    return operands[0]
               ? b.mixOrigins(mixed.origin ? mixed : Shadow(), operands[0])
               : mixed.origin;
  }

  /// Conversions whose operands or results are packed; null for others.
  Value buildConversion() {
    StringRef name = op->getName().getStringRef();
    auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
    if (intrinsic)
      name = intrinsic.getIntrin();
    bool isOfTwo = name.starts_with("nvvm.convert.f32x2.to.") ||
                   name.starts_with("llvm.nvvm.ff");
    if (isOfTwo && operands.size() == 2) {
      Type pair = VectorType::get(2, b.builder.getI1Type());
      // The first operand goes to the upper half (PTX ISA, "cvt").
      Value halves = b.zero(pair);
      for (unsigned operand : {0, 1})
        if (operands[operand])
          halves = b.create<LLVM::InsertElementOp>(
              pair, halves, b.any(operands[operand].bits),
              b.create<LLVM::ConstantOp>(b.builder.getI32Type(),
                                         1 - static_cast<int64_t>(operand)));
      return b.fillParts(type, halves, 2);
    }
    bool isOfPair =
        (name.starts_with("nvvm.convert.") || name.starts_with("llvm.nvvm.")) &&
        (name.contains("x2.to.") && !name.contains("f32x2.to."));
    return isOfPair && operands.size() == 1 ? b.fillParts(type, getBits(0), 2)
                                            : Value();
  }

  /// Ops on vectors that don't go lane by lane.
  bool crossesLanes() const {
    StringRef name = op->getName().getStringRef();
    if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op))
      name = intrinsic.getIntrin();
    return name.contains("vector.") || name.contains("matrix.") ||
           name.contains(".vp.");
  }

  /// A result, or a lane, is poisoned if anything is that it depends on.
  Value buildAny() {
    auto result = dyn_cast<VectorType>(type);
    auto isByLane = [&](Shadow operand) {
      auto vector =
          operand ? dyn_cast<VectorType>(operand.bits.getType()) : VectorType();
      return !operand || (result && vector &&
                          vector.getNumElements() == result.getNumElements());
    };
    bool hasLanes = !crossesLanes() && llvm::all_of(operands, isByLane);
    Value poisoned;
    for (Shadow operand : operands) {
      if (!operand)
        continue;
      Value next =
          hasLanes && result ? getLanes(operand.bits) : b.any(operand.bits);
      poisoned = poisoned ? b.create<LLVM::OrOp>(poisoned, next) : next;
    }
    if (!hasLanes || !result)
      return b.fill(type, poisoned);
    return result.getElementType().isInteger(1)
               ? poisoned
               : b.create<LLVM::SExtOp>(type, poisoned);
  }

  Value getLanes(Value bits) {
    return getElementTypeOrSelf(bits).isInteger(1) ? bits : b.isNotZero(bits);
  }

  Operation *op;
  ArrayRef<Shadow> operands;
  ShadowBuilder b;
  Type type;
};

} // namespace

Shadow kvcache::computeShadow(Operation *op, ArrayRef<Shadow> operands) {
  return Rule(op, operands).build();
}
