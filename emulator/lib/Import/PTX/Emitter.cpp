//===- Emitter.cpp - One instruction of inline PTX as ops -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

static constexpr unsigned kPointerBits = 64;

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

unsigned ptx::getBits(mlir::Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return kPointerBits;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth();
  return type.getIntOrFloatBitWidth();
}

Value ptx::toInteger(OpBuilder &builder, Location loc, Value value) {
  mlir::Type type = value.getType();
  if (isa<IntegerType>(type))
    return value;
  mlir::Type integer = builder.getIntegerType(getBits(type));
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::PtrToIntOp::create(builder, loc, integer, value);
  return LLVM::BitcastOp::create(builder, loc, integer, value);
}

Value ptx::resize(OpBuilder &builder, Location loc, Value integer,
                  unsigned bits, bool isSigned) {
  unsigned given = integer.getType().getIntOrFloatBitWidth();
  mlir::Type type = builder.getIntegerType(bits);
  if (given == bits)
    return integer;
  if (given > bits)
    return LLVM::TruncOp::create(builder, loc, type, integer);
  if (isSigned)
    return LLVM::SExtOp::create(builder, loc, type, integer);
  return LLVM::ZExtOp::create(builder, loc, type, integer);
}

Value ptx::bitcast(OpBuilder &builder, Location loc, Value value,
                   mlir::Type type) {
  if (value.getType() == type)
    return value;
  value = toInteger(builder, loc, value);
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(builder, loc, type, value);
  if (value.getType() == type)
    return value;
  return LLVM::BitcastOp::create(builder, loc, type, value);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void Emitter::fail(const Twine &message) {
  if (error.empty())
    error = message.str();
}

std::string Emitter::takeError() {
  for (auto [part, isPartTaken] : llvm::zip_equal(statement.name, isTaken))
    if (!isPartTaken)
      fail("with '." + Twine(part) + "' has no lowering");
  return std::move(error);
}

//===----------------------------------------------------------------------===//
// Modifiers
//===----------------------------------------------------------------------===//

bool Emitter::take(StringRef modifier) {
  for (auto [index, part] : llvm::enumerate(statement.name))
    if (!isTaken[index] && part == modifier)
      return isTaken[index] = true;
  return false;
}

StringRef Emitter::takeOneOf(ArrayRef<StringRef> modifiers) {
  for (StringRef modifier : modifiers)
    if (take(modifier))
      return modifier;
  return "";
}

StringRef Emitter::findFirst(ArrayRef<StringRef> modifiers) const {
  for (StringRef part : statement.name)
    if (llvm::is_contained(modifiers, part))
      return part;
  return "";
}

std::optional<StringRef> Emitter::takePrefix(StringRef prefix) {
  std::optional<StringRef> found;
  for (auto [index, part] : llvm::enumerate(statement.name)) {
    StringRef rest = part;
    if (isTaken[index] || !rest.consume_front(prefix))
      continue;
    isTaken[index] = true;
    found = rest;
  }
  return found;
}

SmallVector<StringRef> Emitter::takeRest() {
  SmallVector<StringRef> rest;
  for (auto [index, part] : llvm::enumerate(statement.name)) {
    if (isTaken[index])
      continue;
    isTaken[index] = true;
    rest.push_back(part);
  }
  return rest;
}

std::optional<PTXType> Emitter::takeOptionalType() {
  for (size_t index = statement.name.size(); index-- > 1;) {
    if (isTaken[index])
      continue;
    std::optional<PTXType> type = PTXType::parse(statement.name[index]);
    if (!type)
      continue;
    isTaken[index] = true;
    return type;
  }
  return std::nullopt;
}

PTXType Emitter::takeType() {
  std::optional<PTXType> type = takeOptionalType();
  if (!type)
    fail("expects a type after its name");
  return type.value_or(PTXType());
}

NVVM::MemScopeKind Emitter::takeScope(NVVM::MemScopeKind otherwise) {
  StringRef scope = takeOneOf({"cta", "cluster", "gpu", "sys"});
  std::optional<NVVM::MemScopeKind> kind = NVVM::symbolizeMemScopeKind(scope);
  return kind.value_or(otherwise);
}

bool Emitter::takeCacheHints() {
  bool hasPolicy = take("L2::cache_hint");
  takePrefix("L1::");
  takePrefix("L2::");
  return hasPolicy;
}

unsigned Emitter::takeSpace() {
  using Space = NVVM::NVVMMemorySpace;
  StringRef name = takeOneOf(
      {"global", "shared", "shared::cta", "shared::cluster", "const", "local"});
  Space space = llvm::StringSwitch<Space>(name)
                    .Case("global", Space::Global)
                    .Cases({"shared", "shared::cta"}, Space::Shared)
                    .Case("shared::cluster", Space::SharedCluster)
                    .Case("const", Space::Constant)
                    .Case("local", Space::Local)
                    .Default(Space::Generic);
  return static_cast<unsigned>(space);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Emitter::constant(int64_t value, unsigned bits) {
  mlir::Type type = getIntegerType(bits);
  return LLVM::ConstantOp::create(
      builder, loc, type,
      builder.getIntegerAttr(type, APInt(bits, static_cast<uint64_t>(value),
                                         /*isSigned=*/false,
                                         /*implicitTrunc=*/true)));
}

Value Emitter::call(StringRef intrinsic, mlir::Type type, ValueRange operands) {
  StringAttr name = builder.getStringAttr(intrinsic);
  if (!type) {
    LLVM::CallIntrinsicOp::create(builder, loc, name, operands);
    return {};
  }
  return LLVM::CallIntrinsicOp::create(builder, loc, type, name, operands)
      ->getResult(0);
}

Value Emitter::castPointer(Value pointer, unsigned space) {
  unsigned given =
      cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
  if (given == space)
    return pointer;
  return LLVM::AddrSpaceCastOp::create(builder, loc, getPointerType(space),
                                       pointer);
}

mlir::Type Emitter::convert(const PTXType &type) {
  mlir::Type element = llvm::StringSwitch<mlir::Type>(type.name)
                           .Cases({"f16", "f16x2"}, builder.getF16Type())
                           .Cases({"bf16", "bf16x2"}, builder.getBF16Type())
                           .Case("f32", builder.getF32Type())
                           .Case("f64", builder.getF64Type())
                           .Default(getIntegerType(type.bits));
  bool isVector = type.isPair() && isa<FloatType>(element);
  return isVector ? VectorType::get(2, element) : element;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

const Operand &Emitter::get(size_t index) {
  static const Operand none;
  if (index < size())
    return statement.operands[index];
  fail("expects more than " + Twine(size()) + " operands");
  return none;
}

bool Emitter::expectOperands(size_t least, size_t most) {
  if (size() < least || size() > most)
    fail("expects " + Twine(least) +
         (least == most ? "" : " to " + std::to_string(most)) +
         " operands, got " + Twine(size()));
  return !hasFailed();
}

/// The registers that have an op in NVVM: PTX ISA, "Special Registers".
Value Emitter::readSpecial(const Operand &operand) {
  std::string name = "nvvm.read.ptx.sreg.";
  StringRef rest = operand.name;
  if (rest.consume_front("lanemask_"))
    name += "lanemask.";
  else if (rest.consume_front("cluster_"))
    name += "cluster.";
  name += rest;
  auto known = RegisteredOperationName::lookup(name, builder.getContext());
  if (!known) {
    fail("reads %" + Twine(operand.name) + ", which has no lowering");
    return constant(0, 32);
  }
  bool isWide = rest == "clock64" || rest == "globaltimer";
  OperationState state(loc, *known);
  state.addTypes(getIntegerType(isWide ? 64 : 32));
  return builder.create(state)->getResult(0);
}

Value Emitter::getRegister(const Operand &operand) {
  Value value = values[operand.number];
  if (value)
    return value;
  return LLVM::UndefOp::create(
      builder, loc, getIntegerType(program.registers[operand.number].bits));
}

Value Emitter::getInteger(const Operand &operand, unsigned bits) {
  switch (operand.kind) {
  case Operand::Kind::Register: {
    Value value = resize(toInteger(getRegister(operand)), bits);
    if (operand.isNegated && bits == 1)
      return LLVM::XOrOp::create(builder, loc, value, constant(1, 1));
    if (operand.isNegated)
      fail("has a negated register");
    return value;
  }
  case Operand::Kind::Special:
    return resize(readSpecial(operand), bits);
  case Operand::Kind::Integer:
    return constant(operand.value, bits);
  case Operand::Kind::Vector: {
    // The first part is in the low bits: PTX ISA, "mov".
    unsigned part = bits / operand.parts.size();
    Value whole = constant(0, bits);
    for (auto [index, element] : llvm::enumerate(operand.parts)) {
      Value wide = resize(getInteger(element, part), bits);
      Value shifted =
          LLVM::ShlOp::create(builder, loc, wide, constant(index * part, bits));
      whole = LLVM::OrOp::create(builder, loc, whole, shifted);
    }
    return whole;
  }
  case Operand::Kind::Float: {
    llvm::APFloat number = operand.number == 32
                               ? llvm::APFloat(llvm::APFloat::IEEEsingle(),
                                               APInt(32, operand.value))
                               : llvm::APFloat(llvm::APFloat::IEEEdouble(),
                                               APInt(64, operand.value));
    bool isInexact = false;
    number.convert(bits == 64   ? llvm::APFloat::IEEEdouble()
                   : bits == 16 ? llvm::APFloat::IEEEhalf()
                                : llvm::APFloat::IEEEsingle(),
                   llvm::APFloat::rmNearestTiesToEven, &isInexact);
    if (operand.isNegated)
      number.changeSign();
    return constant(number.bitcastToAPInt().getZExtValue(), bits);
  }
  default:
    fail("expects a register or a number as operand");
    return constant(0, bits);
  }
}

Value Emitter::getValue(const Operand &operand, mlir::Type type) {
  return bitcast(getInteger(operand, getBits(type)), type);
}

ArrayRef<Operand> Emitter::getParts(size_t index) {
  const Operand &operand = get(index);
  return operand.kind == Operand::Kind::Vector ? ArrayRef(operand.parts)
                                               : ArrayRef(operand);
}

SmallVector<Value> Emitter::getValues(size_t index, mlir::Type type) {
  return llvm::map_to_vector(getParts(index), [&](const Operand &part) {
    return getValue(part, type);
  });
}

int64_t Emitter::getConstant(size_t index) {
  const Operand &operand = get(index);
  APInt value(64, 0);
  if (operand.kind == Operand::Kind::Integer)
    return operand.value;
  if (operand.kind == Operand::Kind::Register && values[operand.number] &&
      matchPattern(values[operand.number], m_ConstantInt(&value)))
    return value.getSExtValue();
  fail("expects operand " + Twine(index) + " to be a constant");
  return 0;
}

/// The value of an integer that is a constant, or a comparison of constants.
static std::optional<APInt> evaluate(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant;
  auto compare = value.getDefiningOp<LLVM::ICmpOp>();
  if (!compare)
    return std::nullopt;
  std::optional<APInt> a = evaluate(compare.getLhs());
  std::optional<APInt> b = evaluate(compare.getRhs());
  if (!a || !b)
    return std::nullopt;
  bool isEqual = *a == *b;
  if (compare.getPredicate() == LLVM::ICmpPredicate::eq)
    return APInt(1, isEqual);
  if (compare.getPredicate() == LLVM::ICmpPredicate::ne)
    return APInt(1, !isEqual);
  return std::nullopt;
}

std::optional<bool> Emitter::getKnownPredicate(size_t index) {
  std::optional<APInt> value = evaluate(getPredicate(index));
  return value ? std::optional(!value->isZero()) : std::nullopt;
}

/// An address may have come through an integer.
static Value lookThroughIntegers(Value value) {
  auto cast = value.getDefiningOp<LLVM::PtrToIntOp>();
  bool isWhole = cast && cast.getType().getIntOrFloatBitWidth() == kPointerBits;
  return isWhole ? cast.getArg() : value;
}

static bool isSharedSpace(unsigned space) {
  return space == kShared || space == kCluster;
}

Value Emitter::getPointer(const Operand &operand, unsigned space) {
  if (operand.kind != Operand::Kind::Register) {
    Value address = getInteger(operand, kPointerBits);
    return LLVM::IntToPtrOp::create(builder, loc, getPointerType(space),
                                    address);
  }
  Value value = lookThroughIntegers(getRegister(operand));
  auto type = dyn_cast<LLVM::LLVMPointerType>(value.getType());
  // A generic address is not the number of an address in shared memory.
  if (type && (type.getAddressSpace() == space ||
               isSharedSpace(type.getAddressSpace()) == isSharedSpace(space)))
    return castPointer(value, space);
  Value number = resize(toInteger(getRegister(operand)), kPointerBits);
  return LLVM::IntToPtrOp::create(builder, loc, getPointerType(space), number);
}

Value Emitter::getAddress(size_t index, unsigned space) {
  const Operand &operand = get(index);
  if (operand.kind != Operand::Kind::Address) {
    fail("expects operand " + Twine(index) + " to be an address");
    return LLVM::ZeroOp::create(builder, loc, getPointerType(space));
  }
  Value pointer = getPointer(operand.parts.front(), space);
  if (operand.value == 0)
    return pointer;
  return LLVM::GEPOp::create(builder, loc, pointer.getType(),
                             builder.getI8Type(), pointer,
                             constant(operand.value, kPointerBits));
}

void Emitter::set(const Operand &operand, Value value, bool isSigned) {
  if (operand.kind == Operand::Kind::Sink)
    return;
  if (operand.kind != Operand::Kind::Register)
    return fail("expects a register for its result");
  // What needs no conversion keeps its type.
  unsigned bits = program.registers[operand.number].bits;
  if (getBits(value.getType()) != bits)
    value = resize(toInteger(value), bits, isSigned);
  values[operand.number] = value;
}

/// It follows the registers of the program.
Value Emitter::getCarry() {
  Value carry = values[program.registers.size()];
  if (!carry)
    fail("reads the carry, which no instruction before it writes");
  return carry ? carry : constant(0, 1);
}

void Emitter::setCarry(Value isCarry) {
  values[program.registers.size()] = isCarry;
}

void Emitter::setAll(size_t index, ValueRange results, bool isSigned) {
  ArrayRef<Operand> parts = getParts(index);
  if (parts.size() != results.size())
    return fail("expects " + Twine(results.size()) +
                " registers for its result, got " + Twine(parts.size()));
  for (auto [part, result] : llvm::zip_equal(parts, results))
    set(part, result, isSigned);
}
