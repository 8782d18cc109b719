//===- DeviceMath.cpp - Functions of f32 on a CPU or a GPU ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceMath.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

Value DeviceMath::exp2(Value power) const {
  if (!isGPU)
    return exp2Polynomial(power);
  return math::Exp2Op::create(builder, loc, power, arith::FastMathFlags::afn);
}

constexpr float kExponentBias = 127;

/// Adding a large number rounds the power to a whole one, in the low bits.
std::pair<Value, Value>
DeviceMath::factorExp2(Value power, ArrayRef<float> polynomial) const {
  constexpr float large = (3 << 22) + kExponentBias;
  constexpr int32_t mantissaBits = 23;
  Type type = power.getType();
  Type bits = withLane(type, builder.getI32Type());
  Value rounded = add(power, constant(type, large));
  Value whole = sub(rounded, constant(type, large));
  Value fraction = sub(power, whole);
  Value sum = constant(type, polynomial.front());
  for (float term : polynomial.drop_front())
    sum = fma(sum, fraction, constant(type, term));
  Value exponent = arith::ShLIOp::create(
      builder, loc, arith::BitcastOp::create(builder, loc, bits, rounded),
      createScalarOrSplatConstant(builder, loc, bits, APInt(32, mantissaBits)));
  return {sum, arith::BitcastOp::create(builder, loc, type, exponent)};
}

/// The minimax polynomial in [-0.5, 0.5] that is 1 for 0 has the relative error
/// 2^-23.3. A product, and not a sum of exponents, keeps NaNs.
Value DeviceMath::exp2Polynomial(Value power) const {
  Value least = constant(power.getType(), 1 - kExponentBias);
  auto [fraction, whole] = factorExp2(
      larger(least, power), {0.0013264727F, 0.0096715130F, 0.055507336F,
                             0.24022242F, 0.69314700F, 1.0F});
  return mul(fraction, whole);
}

/// The minimax polynomial in [-0.5, 0.5] that is 1 for 0 has the relative error
/// 2^-13.2. A product by 2^-127 = 0, and not a sum of exponents, keeps NaNs.
/// Products of two floats are one instruction only if they are added to.
Value DeviceMath::exp2Cubic(Value power) const {
  Value above =
      arith::MaximumFOp::create(builder, loc, power, constant(-kExponentBias));
  auto [fraction, whole] =
      factorExp2(above, {0.05500906F, 0.24221097F, 0.6932829F, 1.0F});
  return fma(fraction, whole, constant(0.0F));
}

/// A chip's own has an error of 2^-22 (PTX ISA, "lg2.approx"); another needs
/// CUDA's libdevice.
Value DeviceMath::log2(Value value) const {
  auto flags = isGPU ? arith::FastMathFlags::afn : arith::FastMathFlags::none;
  return math::Log2Op::create(builder, loc, value, flags);
}

Value DeviceMath::log(Value value) const {
  if (!isGPU)
    return math::LogOp::create(builder, loc, value);
  return mul(log2(value), constant(llvm::numbers::ln2f));
}

/// The minimax polynomial of |x| <= 0.5: its relative error is 2^-26.
Value DeviceMath::tanhPolynomial(Value value) const {
  Type type = value.getType();
  Value square = mul(value, value);
  Value sum = constant(type, 0.01725699);
  for (double term : {-0.05305295, 0.13325987, -0.33333148})
    sum = fma(sum, square, constant(type, term));
  return fma(mul(value, square), sum, value);
}

/// (1 - e) / (1 + e) with e = 2^(-2 |x| log2 e), with the sign of x.
Value DeviceMath::tanh(Value value, bool isSmallExact) const {
  Type type = value.getType();
  Value size = abs(value);
  Value e = exp2(mul(size, constant(type, -2 * llvm::numbers::log2e)));
  Value one = constant(type, 1);
  Value ratio = div(sub(one, e), add(one, e));
  Value result = math::CopySignOp::create(builder, loc, ratio, value);
  if (!isSmallExact)
    return result;
  Value isSmall = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT,
                                        size, constant(type, 0.5));
  return select(isSmall, tanhPolynomial(value), result);
}
