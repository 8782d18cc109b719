//===- Conversions.cpp - Conversions of inline PTX ------------------------===//
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

static bool isIntegerType(const PTXType &type) { return !type.isFloat(); }

/// Pairs of 8 bits or fewer, and tf32: they have no type of their own.
static bool isNarrow(const PTXType &type) {
  return type.isFloat() && type.isPair() && type.bits == 16;
}

/// The modifiers of a conversion of floats, as intrinsics have them. Those to
/// narrow pairs saturate in any case.
static std::string takeModifiers(Emitter &emitter, bool isNarrow) {
  std::string text;
  for (StringRef modifier : {"rn", "rna", "rz", "rs", "relu"})
    if (emitter.take(modifier))
      text += "." + modifier.str();
  if (emitter.take("satfinite") && !isNarrow)
    text += ".satfinite";
  return text;
}

/// `cvt.rn.bf16x2.f32 d, a, b`, `cvt.rn.satfinite.e4m3x2.f32 d, a, b`: the
/// first goes to the high half.
static void emitPack(const PTXType &to, Emitter &emitter) {
  std::string modifiers = takeModifiers(emitter, isNarrow(to));
  std::string name = isNarrow(to) ? ("llvm.nvvm.ff.to." + to.name).str()
                                  : ("llvm.nvvm.ff2" + to.name).str();
  mlir::Type f32 = emitter.builder.getF32Type();
  emitter.set(
      0, emitter.call(name + modifiers, emitter.convert(to),
                      {emitter.getValue(1, f32), emitter.getValue(2, f32)}));
}

/// Between packed formats: `cvt.rn.f16x2.e4m3x2 d, a`.
static void emitRepack(const PTXType &to, const PTXType &from,
                       Emitter &emitter) {
  std::string modifiers = takeModifiers(emitter, isNarrow(to));
  std::string name = ("llvm.nvvm." + from.name + ".to." + to.name).str();
  emitter.set(0, emitter.call(name + modifiers, emitter.convert(to),
                              emitter.getValue(1, emitter.convert(from))));
}

/// From f32 to a float of 16 bits, or to tf32.
static void emitNarrow(const PTXType &to, Emitter &emitter) {
  std::string modifiers = takeModifiers(emitter, /*isNarrow=*/false);
  emitter.set(0,
              emitter.call(("llvm.nvvm.f2" + to.name).str() + modifiers,
                           emitter.convert(to),
                           emitter.getValue(1, emitter.builder.getF32Type())));
}

/// Between floats. With an integer rounding, to a whole number.
static void emitFloatToFloat(const PTXType &to, const PTXType &from,
                             Emitter &emitter) {
  StringRef whole = emitter.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  bool flushes = emitter.take("ftz");
  if (from.name == "f32" && (to.bits == 16 || to.name == "tf32"))
    return emitNarrow(to, emitter);
  mlir::Type given = emitter.convert(from), wanted = emitter.convert(to);
  Value value = emitter.getValue(1, given);
  if (!whole.empty()) {
    StringRef base = llvm::StringSwitch<StringRef>(whole)
                         .Case("rni", "round")
                         .Case("rzi", "trunc")
                         .Case("rmi", "floor")
                         .Default("ceil");
    std::string name = ("llvm.nvvm." + base).str() + (flushes ? ".ftz" : "") +
                       (from.bits == 64 ? ".d" : ".f");
    value = emitter.call(name, given, value);
  }
  if (from.bits < to.bits)
    value = LLVM::FPExtOp::create(emitter.builder, emitter.loc, wanted, value);
  else if (from.bits > to.bits && emitter.take("rn"))
    value =
        LLVM::FPTruncOp::create(emitter.builder, emitter.loc, wanted, value);
  else if (given != wanted)
    emitter.fail("has a rounding that has no lowering");
  emitter.set(0, value);
}

static void emitIntegerToFloat(const PTXType &to, const PTXType &from,
                               Emitter &emitter) {
  if (!emitter.take("rn"))
    emitter.fail("has a rounding that has no lowering");
  Value value = emitter.getInteger(1, from.bits);
  mlir::Type type = emitter.convert(to);
  if (from.isSigned())
    value = LLVM::SIToFPOp::create(emitter.builder, emitter.loc, type, value);
  else
    value = LLVM::UIToFPOp::create(emitter.builder, emitter.loc, type, value);
  emitter.set(0, value);
}

/// The result saturates: PTX ISA, "cvt".
static void emitFloatToInteger(const PTXType &to, const PTXType &from,
                               Emitter &emitter) {
  StringRef rounding = emitter.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  bool flushes = emitter.take("ftz");
  if (rounding.empty() || (to.bits != 32 && to.bits != 64))
    return emitter.fail("has a form that has no lowering");
  Value value = emitter.getValue(1, emitter.convert(from));
  if (from.bits == 16)
    value = LLVM::FPExtOp::create(emitter.builder, emitter.loc,
                                  emitter.builder.getF32Type(), value);
  std::string name = from.bits == 64 ? "llvm.nvvm.d2" : "llvm.nvvm.f2";
  name += to.isSigned() ? "" : "u";
  name += to.bits == 64 ? "ll." : "i.";
  name += rounding.drop_back().str() + (flushes ? ".ftz" : "");
  emitter.set(0, emitter.call(name, emitter.getIntegerType(to.bits), value),
              to.isSigned());
}

/// cvt.to.from
static void emitConvert(Emitter &emitter) {
  PTXType from = emitter.takeType();
  PTXType to = emitter.takeType();
  if (!emitter.expectOperands(2, 3))
    return;
  if (emitter.size() == 3)
    return emitPack(to, emitter);
  if (isIntegerType(to) && isIntegerType(from))
    return emitter.set(0,
                       emitter.resize(emitter.getInteger(1, from.bits), to.bits,
                                      from.isSigned()),
                       to.isSigned());
  if (to.isPair() || from.isPair())
    return emitRepack(to, from, emitter);
  if (isIntegerType(from))
    return emitIntegerToFloat(to, from, emitter);
  if (isIntegerType(to))
    return emitFloatToInteger(to, from, emitter);
  emitFloatToFloat(to, from, emitter);
}

/// cvta: from a space to generic addresses, or back.
static void emitConvertAddress(Emitter &emitter) {
  bool isToSpace = emitter.take("to");
  unsigned space = emitter.takeSpace();
  emitter.takeType();
  if (!emitter.expectOperands(2))
    return;
  Value pointer = emitter.getPointer(emitter.get(1), isToSpace ? 0 : space);
  emitter.set(0, emitter.castPointer(pointer, isToSpace ? space : 0));
}

bool ptx::emitConversion(StringRef name, Emitter &emitter) {
  if (name == "cvt")
    return emitConvert(emitter), true;
  if (name == "cvta")
    return emitConvertAddress(emitter), true;
  return false;
}
