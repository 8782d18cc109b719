//===- Comparisons.cpp - Comparisons and moves of inline PTX --------------===//
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

static Value compareIntegers(StringRef comparison, const PTXType &type,
                             Emitter &emitter) {
  using Predicate = LLVM::ICmpPredicate;
  bool isSigned = type.isSigned();
  auto predicate = llvm::StringSwitch<std::optional<Predicate>>(comparison)
                       .Case("eq", Predicate::eq)
                       .Case("ne", Predicate::ne)
                       .Case("lt", isSigned ? Predicate::slt : Predicate::ult)
                       .Case("le", isSigned ? Predicate::sle : Predicate::ule)
                       .Case("gt", isSigned ? Predicate::sgt : Predicate::ugt)
                       .Case("ge", isSigned ? Predicate::sge : Predicate::uge)
                       .Case("lo", Predicate::ult)
                       .Case("ls", Predicate::ule)
                       .Case("hi", Predicate::ugt)
                       .Case("hs", Predicate::uge)
                       .Default(std::nullopt);
  if (!predicate)
    return {};
  return LLVM::ICmpOp::create(emitter.builder, emitter.loc, *predicate,
                              emitter.getInteger(1, type.bits),
                              emitter.getInteger(2, type.bits));
}

static Value compareFloats(StringRef comparison, const PTXType &type,
                           Emitter &emitter) {
  using Predicate = LLVM::FCmpPredicate;
  auto predicate = llvm::StringSwitch<std::optional<Predicate>>(comparison)
                       .Case("eq", Predicate::oeq)
                       .Case("ne", Predicate::one)
                       .Case("lt", Predicate::olt)
                       .Case("le", Predicate::ole)
                       .Case("gt", Predicate::ogt)
                       .Case("ge", Predicate::oge)
                       .Case("equ", Predicate::ueq)
                       .Case("neu", Predicate::une)
                       .Case("ltu", Predicate::ult)
                       .Case("leu", Predicate::ule)
                       .Case("gtu", Predicate::ugt)
                       .Case("geu", Predicate::uge)
                       .Case("num", Predicate::ord)
                       .Case("nan", Predicate::uno)
                       .Default(std::nullopt);
  if (!predicate)
    return {};
  mlir::Type floats = emitter.convert(type);
  return LLVM::FCmpOp::create(emitter.builder, emitter.loc, *predicate,
                              emitter.getValue(1, floats),
                              emitter.getValue(2, floats));
}

static constexpr StringRef kComparisons[] = {
    "eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
    "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

/// set: a comparison as a number, 1 or all ones; of pairs, part by part.
static void emitSet(Emitter &emitter) {
  PTXType from = emitter.takeType(), to = emitter.takeType();
  StringRef comparison = emitter.takeOneOf(kComparisons);
  emitter.take("ftz");
  if (!emitter.expectOperands(3))
    return;
  if (from.isPair() && to.name != from.name)
    return emitter.fail("has types that have no lowering");
  Value result = from.isFloat() ? compareFloats(comparison, from, emitter)
                                : compareIntegers(comparison, from, emitter);
  if (!result)
    return emitter.fail("has an unknown comparison");
  mlir::Type type = emitter.convert(to);
  if (to.isFloat())
    result = LLVM::UIToFPOp::create(emitter.builder, emitter.loc, type, result);
  else
    result = LLVM::SExtOp::create(emitter.builder, emitter.loc, type, result);
  emitter.set(0, result);
}

/// setp: a comparison into a predicate, and its opposite into a second one.
static void emitPredicates(Emitter &emitter) {
  PTXType type = emitter.takeType();
  StringRef comparison = emitter.takeOneOf(kComparisons);
  StringRef combine = emitter.takeOneOf({"and", "or", "xor"});
  if (!emitter.expectOperands(combine.empty() ? 3 : 4))
    return;
  Value result = type.isFloat() ? compareFloats(comparison, type, emitter)
                                : compareIntegers(comparison, type, emitter);
  if (!result || type.isPair())
    return emitter.fail("has an unknown comparison");
  if (IntegerOp create = getIntegerOp(combine, /*isSigned=*/false))
    result = create(emitter, result, emitter.getPredicate(3));
  const Operand &to = emitter.get(0);
  if (to.kind != Operand::Kind::Pair)
    return emitter.set(to, result);
  emitter.set(to.parts[0], result);
  emitter.set(to.parts[1], LLVM::XOrOp::create(emitter.builder, emitter.loc,
                                               result, emitter.constant(1, 1)));
}

static void emitSelect(Emitter &emitter) {
  PTXType type = emitter.takeType();
  if (!emitter.expectOperands(4))
    return;
  emitter.set(0, LLVM::SelectOp::create(emitter.builder, emitter.loc,
                                        emitter.getPredicate(3),
                                        emitter.getInteger(1, type.bits),
                                        emitter.getInteger(2, type.bits)));
}

/// mov copies bits, also between a register and the parts of a vector.
static void emitMove(Emitter &emitter) {
  PTXType type = emitter.takeType();
  if (!emitter.expectOperands(2))
    return;
  Value value = emitter.getInteger(1, type.bits);
  if (emitter.get(0).kind != Operand::Kind::Vector)
    return emitter.set(0, value);
  ArrayRef<Operand> parts = emitter.getParts(0);
  unsigned bits = type.bits / parts.size();
  for (auto [index, part] : llvm::enumerate(parts)) {
    Value shifted =
        LLVM::LShrOp::create(emitter.builder, emitter.loc, value,
                             emitter.constant(index * bits, type.bits));
    emitter.set(part, emitter.resize(shifted, bits));
  }
}

bool ptx::emitComparison(StringRef name, Emitter &emitter) {
  if (name == "mov")
    return emitMove(emitter), true;
  if (name == "setp")
    return emitPredicates(emitter), true;
  if (name == "set")
    return emitSet(emitter), true;
  if (name == "selp")
    return emitSelect(emitter), true;
  return false;
}
