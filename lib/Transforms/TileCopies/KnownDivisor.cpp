//===- KnownDivisor.cpp - Divisors of index values ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownDivisor.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

static int64_t multiplyDivisors(int64_t lhs, int64_t rhs) {
  int64_t product;
  return llvm::MulOverflow(lhs, rhs, product) ? 1 : product;
}

/// The known divisor of an expression over the operands of `apply`, by which
/// mapped loops compute their variables.
static int64_t getKnownDivisorOf(AffineExpr expr, affine::AffineApplyOp apply) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return std::abs(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return getKnownDivisor(apply.getMapOperands()[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return getKnownDivisor(apply.getSymbolOperands()[symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = getKnownDivisorOf(binary.getLHS(), apply);
  int64_t rhs = getKnownDivisorOf(binary.getRHS(), apply);
  if (expr.getKind() == AffineExprKind::Add)
    return std::gcd(lhs, rhs);
  return expr.getKind() == AffineExprKind::Mul ? multiplyDivisors(lhs, rhs) : 1;
}

static int64_t getKnownDivisorOfAll(ArrayRef<Value> values) {
  int64_t divisor = 0;
  for (Value value : values)
    divisor = std::gcd(divisor, getKnownDivisor(value));
  return divisor;
}

static int64_t getKnownDivisorOfShift(Value value, Value shift) {
  std::optional<int64_t> amount = getConstantIntValue(shift);
  if (!amount || *amount < 0 || *amount > 30)
    return 1;
  int64_t divisor = getKnownDivisor(value);
  return divisor > (int64_t(1) << 30) ? 1 : divisor << *amount;
}

/// The known divisor of the induction variable of a loop: it divides the lower
/// bound and the step.
static int64_t getKnownDivisorOfVariable(BlockArgument variable) {
  auto loop = dyn_cast<LoopLikeOpInterface>(variable.getOwner()->getParentOp());
  if (!loop)
    return 1;
  auto variables = loop.getLoopInductionVars();
  auto lowerBounds = loop.getLoopLowerBounds();
  auto steps = loop.getLoopSteps();
  if (!variables || !lowerBounds || !steps)
    return 1;
  for (auto [each, lower, step] : llvm::zip(*variables, *lowerBounds, *steps)) {
    if (each != variable)
      continue;
    auto getDivisor = [](OpFoldResult bound) {
      if (std::optional<int64_t> constant = getConstantIntValue(bound))
        return std::abs(*constant);
      return getKnownDivisor(cast<Value>(bound));
    };
    return std::gcd(getDivisor(lower), getDivisor(step));
  }
  return 1;
}

int64_t kvcache::getKnownDivisor(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::abs(*constant);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getKnownDivisorOfVariable(argument);
  return llvm::TypeSwitch<Operation *, int64_t>(value.getDefiningOp())
      .Case<arith::MulIOp>([](auto op) {
        return multiplyDivisors(getKnownDivisor(op.getLhs()),
                                getKnownDivisor(op.getRhs()));
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MinUIOp,
            arith::MaxSIOp, arith::MaxUIOp>([](auto op) {
        return getKnownDivisorOfAll({op.getLhs(), op.getRhs()});
      })
      .Case<arith::SelectOp>([](auto op) {
        return getKnownDivisorOfAll({op.getTrueValue(), op.getFalseValue()});
      })
      .Case<arith::ShLIOp>([](auto op) {
        return getKnownDivisorOfShift(op.getLhs(), op.getRhs());
      })
      .Case<affine::AffineApplyOp>([](auto op) {
        return getKnownDivisorOf(op.getAffineMap().getResult(0), op);
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
          [](auto op) { return getKnownDivisor(op.getIn()); })
      .Default(int64_t(1));
}
