//===- Libdevice.cpp - CUDA's math library on the host --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathCalls.h"
#include "kvcache/Emulator/Math.h"

#include "llvm/ADT/FloatingPointMode.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The intrinsic of LLVM that a function is; empty if there is none.
static StringRef getIntrinsic(StringRef function) {
  return llvm::StringSwitch<StringRef>(function)
      .Case("acos", "llvm.acos")
      .Case("asin", "llvm.asin")
      .Case("atan", "llvm.atan")
      .Case("atan2", "llvm.atan2")
      .Case("ceil", "llvm.ceil")
      .Case("copysign", "llvm.copysign")
      .Case("cos", "llvm.cos")
      .Case("cosh", "llvm.cosh")
      .Case("exp", "llvm.exp")
      .Case("exp10", "llvm.exp10")
      .Case("exp2", "llvm.exp2")
      .Case("fabs", "llvm.fabs")
      .Case("floor", "llvm.floor")
      .Case("fma", "llvm.fma")
      .Case("fmax", "llvm.maxnum")
      .Case("fmin", "llvm.minnum")
      .Case("log", "llvm.log")
      .Case("log10", "llvm.log10")
      .Case("log2", "llvm.log2")
      .Case("nearbyint", "llvm.nearbyint")
      .Case("pow", "llvm.pow")
      .Case("rint", "llvm.rint")
      .Case("round", "llvm.round")
      .Case("sin", "llvm.sin")
      .Case("sinh", "llvm.sinh")
      .Case("sqrt", "llvm.sqrt")
      .Case("tan", "llvm.tan")
      .Case("tanh", "llvm.tanh")
      .Case("trunc", "llvm.trunc")
      .Default("");
}

/// The function of the runtime that a function is.
static std::optional<uint32_t> getRuntimeFunction(StringRef function) {
  return llvm::StringSwitch<std::optional<uint32_t>>(function)
      .Case("acosh", KVCacheMathAcosh)
      .Case("asinh", KVCacheMathAsinh)
      .Case("atanh", KVCacheMathAtanh)
      .Case("cbrt", KVCacheMathCbrt)
      .Case("erf", KVCacheMathErf)
      .Case("erfc", KVCacheMathErfc)
      .Case("expm1", KVCacheMathExpm1)
      .Case("fmod", KVCacheMathFmod)
      .Case("hypot", KVCacheMathHypot)
      .Case("j0", KVCacheMathJ0)
      .Case("j1", KVCacheMathJ1)
      .Case("lgamma", KVCacheMathLgamma)
      .Case("log1p", KVCacheMathLog1p)
      .Case("logb", KVCacheMathLogb)
      .Case("remainder", KVCacheMathRemainder)
      .Case("tgamma", KVCacheMathTgamma)
      .Case("y0", KVCacheMathY0)
      .Case("y1", KVCacheMathY1)
      .Default(std::nullopt);
}

namespace {

/// Builds what a call of the library does.
class LibdeviceBuilder {
public:
  LibdeviceBuilder(LLVM::CallOp op, EmulatorCalls &calls)
      : op(op), calls(calls), builder(op), loc(op.getLoc()),
        operands(op.getCalleeOperands()), type(operands.front().getType()) {}

  bool lower(StringRef function) {
    if (function == "sincos")
      return lowerSinCos();
    if (op->getNumResults() != 1)
      return false;
    Value result = build(function);
    if (!result || result.getType() != op->getResult(0).getType())
      return false;
    op->getResult(0).replaceAllUsesWith(result);
    op.erase();
    return true;
  }

private:
  Value build(StringRef function) {
    bool isOnFloats = llvm::all_of(
        operands, [&](Value operand) { return operand.getType() == type; });
    if (StringRef intrinsic = getIntrinsic(function); !intrinsic.empty())
      return isOnFloats ? callIntrinsic(intrinsic) : Value();
    if (std::optional<uint32_t> number = getRuntimeFunction(function))
      return isOnFloats && operands.size() <= 2 ? callRuntime(*number)
                                                : Value();
    if (function == "powi" && operands.size() == 2)
      return callIntrinsic("llvm.powi");
    if (function == "ldexp" && operands.size() == 2)
      return callIntrinsic("llvm.ldexp");
    if (function == "rsqrt" && operands.size() == 1)
      return divide(constant(1), callIntrinsic("llvm.sqrt"));
    if (function == "fdivide" && operands.size() == 2)
      return divide(operands[0], operands[1]);
    llvm::FPClassTest test =
        llvm::StringSwitch<llvm::FPClassTest>(function)
            .Cases({"isnan", "isnand"}, llvm::fcNan)
            .Cases({"isinf", "isinfd"}, llvm::fcInf)
            .Cases({"finite", "isfinite", "isfinited"}, llvm::fcFinite)
            .Default(llvm::fcNone);
    return test == llvm::fcNone ? Value() : classify(test);
  }

  Value callIntrinsic(StringRef intrinsic) {
    return LLVM::CallIntrinsicOp::create(
               builder, loc, type, builder.getStringAttr(intrinsic), operands)
        ->getResult(0);
  }

  Value constant(double number) {
    return LLVM::ConstantOp::create(builder, loc, type,
                                    builder.getFloatAttr(type, number));
  }

  Value divide(Value a, Value b) {
    return LLVM::FDivOp::create(builder, loc, type, a, b);
  }

  /// In f64; what is f32 is rounded.
  Value callRuntime(uint32_t function) {
    Type f64 = builder.getF64Type();
    SmallVector<Value> values;
    for (Value operand : operands)
      values.push_back(type == f64
                           ? operand
                           : LLVM::FPExtOp::create(builder, loc, f64, operand));
    if (values.size() == 1)
      values.push_back(values.front());
    values.push_back(calls.getI32(op, function));
    Value result = calls.call(op, "kvcacheEmulatorMath", f64, values);
    return type == f64 ? result
                       : LLVM::FPTruncOp::create(builder, loc, type, result);
  }

  Value classify(llvm::FPClassTest test) {
    Value is = LLVM::IsFPClass::create(builder, loc, calls.i1, operands[0],
                                       static_cast<uint32_t>(test));
    return LLVM::ZExtOp::create(builder, loc, calls.i32, is);
  }

  bool lowerSinCos() {
    if (operands.size() != 3)
      return false;
    Value sin = LLVM::SinOp::create(builder, loc, type, operands[0]);
    Value cos = LLVM::CosOp::create(builder, loc, type, operands[0]);
    LLVM::StoreOp::create(builder, loc, sin, operands[1]);
    LLVM::StoreOp::create(builder, loc, cos, operands[2]);
    op.erase();
    return true;
  }

  LLVM::CallOp op;
  EmulatorCalls &calls;
  OpBuilder builder;
  Location loc;
  SmallVector<Value> operands;
  /// The type of the first operand.
  Type type;
};

} // namespace

bool kvcache::lowerLibdeviceCall(LLVM::CallOp op, EmulatorCalls &calls) {
  std::optional<StringRef> callee = op.getCallee();
  if (!callee || op.getCalleeOperands().empty())
    return false;
  StringRef function = *callee;
  Type type = op.getCalleeOperands().front().getType();
  if (!function.consume_front("__nv_") || !(type.isF32() || type.isF64()))
    return false;
  function.consume_front("fast_");
  if (type.isF32() && !function.consume_back("f"))
    return false;
  return LibdeviceBuilder(op, calls).lower(function);
}
