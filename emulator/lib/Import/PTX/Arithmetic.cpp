//===- Arithmetic.cpp - Arithmetic of inline PTX --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// The base of the intrinsics that do what an instruction does.
static StringRef getIntrinsicBase(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"add", "sub"}, "add")
      .Cases({"mul", "div", "fma", "neg", "ex2", "lg2"}, name)
      .Cases({"sin", "cos", "tanh", "sqrt", "rcp", "rsqrt"}, name)
      .Case("mad", "fma")
      .Case("min", "fmin")
      .Case("max", "fmax")
      .Case("abs", "fabs")
      .Default("");
}

/// The type in the names of intrinsics.
static StringRef getSuffix(const PTXType &type) {
  return type.name == "f32" ? "f" : type.name == "f64" ? "d" : type.name;
}

/// Arithmetic on floats is what the intrinsic of the same name does.
static void emitFloat(StringRef name, const PTXType &type, Emitter &emitter) {
  StringRef base = getIntrinsicBase(name);
  bool isRounded = emitter.take("rn");
  std::string intrinsic = "llvm.nvvm." + base.str() + (isRounded ? ".rn" : "");
  for (StringRef modifier :
       {"approx", "full", "ftz", "sat", "relu", "NaN", "xorsign", "abs"})
    if (emitter.take(modifier))
      intrinsic += "." + modifier.lower();
  intrinsic += "." + getSuffix(type).str();
  mlir::Type floats = emitter.convert(type);
  if (emitter.size() == 0)
    return emitter.fail("expects operands");
  SmallVector<Value> operands;
  for (size_t i = 1; i < emitter.size(); ++i)
    operands.push_back(emitter.getValue(i, floats));
  if (name == "sub" && operands.size() == 2)
    operands[1] =
        LLVM::FNegOp::create(emitter.builder, emitter.loc, floats, operands[1]);
  emitter.set(0, emitter.call(intrinsic, floats, operands));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

template <typename OpT>
static Value createBinary(Emitter &emitter, Value a, Value b) {
  return OpT::create(emitter.builder, emitter.loc, a, b);
}

IntegerOp ptx::getIntegerOp(StringRef name, bool isSigned) {
  return llvm::StringSwitch<IntegerOp>(name)
      .Case("add", createBinary<LLVM::AddOp>)
      .Case("sub", createBinary<LLVM::SubOp>)
      .Case("div",
            isSigned ? createBinary<LLVM::SDivOp> : createBinary<LLVM::UDivOp>)
      .Case("rem",
            isSigned ? createBinary<LLVM::SRemOp> : createBinary<LLVM::URemOp>)
      .Case("min",
            isSigned ? createBinary<LLVM::SMinOp> : createBinary<LLVM::UMinOp>)
      .Case("max",
            isSigned ? createBinary<LLVM::SMaxOp> : createBinary<LLVM::UMaxOp>)
      .Case("and", createBinary<LLVM::AndOp>)
      .Case("or", createBinary<LLVM::OrOp>)
      .Case("xor", createBinary<LLVM::XOrOp>)
      .Default(nullptr);
}

/// PTX ISA, "shl" and "shr": amounts beyond the width are clamped to it.
static void emitShift(bool isLeft, const PTXType &type, Emitter &emitter) {
  Value value = emitter.getInteger(1, type.bits);
  Value amount = emitter.getInteger(2, 32);
  amount = emitter.resize(amount, std::max(type.bits, 32u));
  Value most = emitter.constant(type.bits - 1, std::max(type.bits, 32u));
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Value clamped = emitter.resize(
      LLVM::UMinOp::create(builder, loc, amount, most), type.bits);
  if (!isLeft && type.isSigned())
    return emitter.set(0, LLVM::AShrOp::create(builder, loc, value, clamped),
                       /*isSigned=*/true);
  Value shifted =
      isLeft ? LLVM::ShlOp::create(builder, loc, value, clamped).getResult()
             : LLVM::LShrOp::create(builder, loc, value, clamped).getResult();
  Value isOutside = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ugt,
                                         amount, most);
  emitter.set(0,
              LLVM::SelectOp::create(builder, loc, isOutside,
                                     emitter.constant(0, type.bits), shifted));
}

/// The sum of two numbers, a carry into it, and the carry out of it.
static void emitCarries(bool reads, bool writes, const PTXType &type, Value a,
                        Value b, Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  unsigned wide = 2 * type.bits;
  Value sum = LLVM::AddOp::create(builder, emitter.loc, emitter.resize(a, wide),
                                  emitter.resize(b, wide));
  if (reads)
    sum = LLVM::AddOp::create(builder, emitter.loc, sum,
                              emitter.resize(emitter.getCarry(), wide));
  emitter.set(0, emitter.resize(sum, type.bits));
  if (writes)
    emitter.setCarry(
        emitter.resize(LLVM::LShrOp::create(builder, emitter.loc, sum,
                                            emitter.constant(type.bits, wide)),
                       1));
}

/// Emits a difference with borrows.
static void emitBorrows(bool reads, bool writes, const PTXType &type,
                        Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  unsigned wide = 2 * type.bits;
  auto getOperand = [&](size_t index) {
    return emitter.resize(emitter.getInteger(index, type.bits), wide);
  };
  Value difference =
      LLVM::SubOp::create(builder, emitter.loc, getOperand(1), getOperand(2));
  if (reads)
    difference = LLVM::SubOp::create(builder, emitter.loc, difference,
                                     emitter.resize(emitter.getCarry(), wide));
  emitter.set(0, emitter.resize(difference, type.bits));
  if (writes)
    emitter.setCarry(
        emitter.resize(LLVM::LShrOp::create(builder, emitter.loc, difference,
                                            emitter.constant(type.bits, wide)),
                       1));
}

/// add.cc, addc, sub.cc, subc, mad.cc and madc.
static void emitExtended(StringRef name, Emitter &emitter) {
  PTXType type = emitter.takeType();
  bool writes = emitter.take("cc"), reads = name.ends_with("c");
  if (name.starts_with("sub")) {
    if (emitter.expectOperands(3))
      emitBorrows(reads, writes, type, emitter);
    return;
  }
  if (!name.starts_with("mad")) {
    if (emitter.expectOperands(3))
      emitCarries(reads, writes, type, emitter.getInteger(1, type.bits),
                  emitter.getInteger(2, type.bits), emitter);
    return;
  }
  bool isHigh = emitter.take("hi");
  if (!isHigh && !emitter.take("lo"))
    return emitter.fail("expects '.lo' or '.hi'");
  if (!emitter.expectOperands(4))
    return;
  unsigned wide = 2 * type.bits;
  auto getFactor = [&](size_t index) {
    return emitter.resize(emitter.getInteger(index, type.bits), wide,
                          type.isSigned());
  };
  Value product = LLVM::MulOp::create(emitter.builder, emitter.loc,
                                      getFactor(1), getFactor(2));
  if (isHigh)
    product = LLVM::LShrOp::create(emitter.builder, emitter.loc, product,
                                   emitter.constant(type.bits, wide));
  emitCarries(reads, writes, type, emitter.resize(product, type.bits),
              emitter.getInteger(3, type.bits), emitter);
}

/// mul and mad: the low half, the high half, or all of the product.
static void emitProduct(bool adds, const PTXType &type, Emitter &emitter) {
  bool isWide = emitter.take("wide"), isHigh = emitter.take("hi");
  if (!isWide && !isHigh && !emitter.take("lo"))
    return emitter.fail("expects '.lo', '.hi' or '.wide'");
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  unsigned bits = isWide || isHigh ? 2 * type.bits : type.bits;
  auto getFactor = [&](size_t index) {
    return emitter.resize(emitter.getInteger(index, type.bits), bits,
                          type.isSigned());
  };
  Value result = LLVM::MulOp::create(builder, loc, getFactor(1), getFactor(2));
  if (isHigh)
    result =
        emitter.resize(LLVM::LShrOp::create(builder, loc, result,
                                            emitter.constant(type.bits, bits)),
                       type.bits);
  unsigned resultBits = isHigh ? type.bits : bits;
  if (adds)
    result = LLVM::AddOp::create(builder, loc, result,
                                 emitter.getInteger(3, resultBits));
  emitter.set(0, result, type.isSigned());
}

/// PTX ISA, "lop3": bit 4a + 2b + c of the table is the result for these bits.
static void emitLogic(Emitter &emitter) {
  if (!emitter.expectOperands(5))
    return;
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  uint64_t table = emitter.getConstant(4);
  Value all = emitter.constant(-1, 32), result = emitter.constant(0, 32);
  for (unsigned row = 0; row < 8; ++row) {
    if (!(table >> row & 1))
      continue;
    Value term = all;
    for (unsigned i = 0; i < 3; ++i) {
      Value bits = emitter.getInteger(1 + i, 32);
      if (!(row >> (2 - i) & 1))
        bits = LLVM::XOrOp::create(builder, loc, bits, all);
      term = LLVM::AndOp::create(builder, loc, term, bits);
    }
    result = LLVM::OrOp::create(builder, loc, result, term);
  }
  emitter.set(0, result);
}

static void emitPermute(Emitter &emitter) {
  std::string intrinsic = "llvm.nvvm.prmt";
  StringRef mode =
      emitter.takeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (!emitter.expectOperands(4))
    return;
  SmallVector<Value> operands{emitter.getInteger(1, 32),
                              emitter.getInteger(2, 32),
                              emitter.getInteger(3, 32)};
  if (!mode.empty())
    intrinsic += "." + mode.str();
  emitter.set(0, emitter.call(intrinsic, emitter.getIntegerType(32), operands));
}

/// popc, clz, brev: an intrinsic of LLVM on one operand.
static bool emitBitCount(StringRef name, const PTXType &type,
                         Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  mlir::Type integer = emitter.getIntegerType(type.bits);
  auto getOperand = [&] { return emitter.getInteger(1, type.bits); };
  if (name == "popc")
    emitter.set(0, LLVM::CtPopOp::create(builder, loc, integer, getOperand()));
  else if (name == "brev")
    emitter.set(
        0, LLVM::BitReverseOp::create(builder, loc, integer, getOperand()));
  else if (name == "clz")
    emitter.set(0, LLVM::CountLeadingZerosOp::create(builder, loc, integer,
                                                     getOperand(),
                                                     /*is_zero_poison=*/false));
  else
    return false;
  return true;
}

/// bfind: the place of the first bit that is not the sign, or how far it is to
/// be shifted to the front; all ones where there is none.
static void emitFind(Emitter &emitter) {
  bool isAmount = emitter.take("shiftamt");
  PTXType type = emitter.takeType();
  if (!emitter.expectOperands(2))
    return;
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Value value = emitter.getInteger(1, type.bits);
  if (type.isSigned()) {
    Value sign = LLVM::AShrOp::create(
        builder, loc, value, emitter.constant(type.bits - 1, type.bits));
    value = LLVM::XOrOp::create(builder, loc, value, sign);
  }
  Value isNone = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                      value, emitter.constant(0, type.bits));
  Value zeros = emitter.resize(
      LLVM::CountLeadingZerosOp::create(builder, loc, value.getType(), value,
                                        /*is_zero_poison=*/false),
      32);
  Value found = zeros;
  if (!isAmount)
    found = LLVM::SubOp::create(builder, loc,
                                emitter.constant(type.bits - 1, 32), zeros);
  emitter.set(0, LLVM::SelectOp::create(builder, loc, isNone,
                                        emitter.constant(-1, 32), found));
}

/// shf.l and shf.r: 32 bits of a pair of registers, shifted.
static void emitFunnelShift(Emitter &emitter) {
  bool isLeft = emitter.take("l");
  bool wraps = emitter.take("wrap");
  if ((!isLeft && !emitter.take("r")) || (!wraps && !emitter.take("clamp")))
    return emitter.fail("expects '.l' or '.r', and '.wrap' or '.clamp'");
  emitter.takeType();
  if (!emitter.expectOperands(4))
    return;
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Value amount = emitter.getInteger(3, 32);
  if (wraps)
    amount =
        LLVM::AndOp::create(builder, loc, amount, emitter.constant(31, 32));
  else
    amount =
        LLVM::UMinOp::create(builder, loc, amount, emitter.constant(32, 32));
  Value high = LLVM::ShlOp::create(
      builder, loc, emitter.resize(emitter.getInteger(2, 32), 64),
      emitter.constant(32, 64));
  Value pair = LLVM::OrOp::create(
      builder, loc, high, emitter.resize(emitter.getInteger(1, 32), 64));
  Value by = emitter.resize(amount, 64);
  if (!isLeft)
    return emitter.set(
        0, emitter.resize(LLVM::LShrOp::create(builder, loc, pair, by), 32));
  Value shifted = LLVM::ShlOp::create(builder, loc, pair, by);
  emitter.set(0, emitter.resize(LLVM::LShrOp::create(builder, loc, shifted,
                                                     emitter.constant(32, 64)),
                                32));
}

/// dp4a: the sum of four products of bytes and a number.
static void emitDotProduct(Emitter &emitter) {
  using Kind = NVVM::DotAccumulateType;
  PTXType b = emitter.takeType(), a = emitter.takeType();
  if (!emitter.expectOperands(4))
    return;
  mlir::Type bytes = VectorType::get(4, emitter.getIntegerType(8));
  auto getKind = [](const PTXType &type) {
    return type.isSigned() ? Kind::SIGNED : Kind::UNSIGNED;
  };
  emitter.set(0, NVVM::DotAccumulate4WayOp::create(
                     emitter.builder, emitter.loc, emitter.getIntegerType(32),
                     emitter.getValue(1, bytes), getKind(a),
                     emitter.getValue(2, bytes), getKind(b),
                     emitter.getInteger(3, 32)));
}

static bool emitInteger(StringRef name, const PTXType &type, Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  if (IntegerOp create = getIntegerOp(name, type.isSigned())) {
    if (emitter.expectOperands(3))
      emitter.set(0,
                  create(emitter, emitter.getInteger(1, type.bits),
                         emitter.getInteger(2, type.bits)),
                  type.isSigned());
    return true;
  }
  if (name == "not" || name == "neg" || name == "abs") {
    if (!emitter.expectOperands(2))
      return true;
    Value value = emitter.getInteger(1, type.bits);
    Value zero = emitter.constant(0, type.bits);
    Value negative = LLVM::SubOp::create(builder, emitter.loc, zero, value);
    if (name == "not")
      value = LLVM::XOrOp::create(builder, emitter.loc, value,
                                  emitter.constant(-1, type.bits));
    else if (name == "neg")
      value = negative;
    else
      value = LLVM::SMaxOp::create(builder, emitter.loc, value, negative);
    emitter.set(0, value, type.isSigned());
    return true;
  }
  return emitBitCount(name, type, emitter);
}

bool ptx::emitArithmetic(StringRef name, Emitter &emitter) {
  constexpr StringLiteral kInteger[] = {"rem", "and", "or",   "xor",
                                        "not", "clz", "popc", "brev"};
  bool isInteger = llvm::is_contained(kInteger, name);
  if (name == "bfind")
    return emitFind(emitter), true;
  if (name == "shf")
    return emitFunnelShift(emitter), true;
  if (name == "dp4a")
    return emitDotProduct(emitter), true;
  if (name == "lop3" || name == "prmt") {
    emitter.takeType();
    return (name == "lop3" ? emitLogic(emitter) : emitPermute(emitter)), true;
  }
  bool carries =
      name == "addc" || name == "subc" || name == "madc" || emitter.has("cc");
  if (carries)
    return emitExtended(name, emitter), true;
  if (name != "shl" && name != "shr" && !isInteger &&
      getIntrinsicBase(name).empty())
    return false;
  PTXType type = emitter.takeType();
  if (type.isFloat())
    return emitFloat(name, type, emitter), true;
  if (name == "shl" || name == "shr") {
    if (emitter.expectOperands(3))
      emitShift(name == "shl", type, emitter);
    return true;
  }
  if (name == "mul" || name == "mad") {
    if (emitter.expectOperands(name == "mul" ? 3 : 4))
      emitProduct(name == "mad", type, emitter);
    return true;
  }
  return emitInteger(name, type, emitter);
}
