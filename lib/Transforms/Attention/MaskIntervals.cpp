//===- MaskIntervals.cpp - Intervals of a mask's integers -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskIntervals.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::kvcache;

/// A bound beyond all positions and their sums. Larger numbers compare with
/// those as it does.
constexpr int64_t kFar = int64_t(1) << 40;

int64_t IntervalMath::getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

bool IntervalMath::isInteger(Type type) {
  return type.isIndex() ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() > 1 &&
          type.getIntOrFloatBitWidth() <= 64);
}

Value IntervalMath::select(Value condition, Value then, Value otherwise) const {
  return b.builder.createOrFold<arith::SelectOp>(b.loc, condition, then,
                                                 otherwise);
}

std::optional<MaskInterval> IntervalMath::makeExact(Value value) const {
  if (!isInteger(value.getType()))
    return std::nullopt;
  int64_t width = getWidth(value.getType());
  int64_t min = llvm::minIntN(width), max = llvm::maxIntN(width);
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    min = max = constant.getSExtValue();
  else if (Operation *cast = value.getDefiningOp())
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::IndexCastUIOp,
            arith::ExtUIOp>(cast)) {
      bool isSigned = isa<arith::IndexCastOp, arith::ExtSIOp>(cast);
      int64_t from = getWidth(cast->getOperand(0).getType());
      if (isSigned ? from <= 64 : from < 64) {
        min = std::max(min, isSigned ? llvm::minIntN(from) : 0);
        max = std::min(max, llvm::maxIntN(isSigned ? from : from + 1));
      }
    }
  if (!value.getType().isIndex()) {
    Type index = b.builder.getIndexType();
    value = b.builder.createOrFold<arith::IndexCastOp>(b.loc, index, value);
  }
  return MaskInterval{0, value, value, min, max, Value(), 0};
}

std::optional<MaskInterval>
IntervalMath::compute(Operation *op, ArrayRef<MaskInterval> operands) const {
  if (operands.size() == 1)
    return computeCast(op, operands[0]);
  return operands.size() == 2 ? computeBinary(op, operands[0], operands[1])
                              : std::nullopt;
}

std::optional<MaskInterval>
IntervalMath::computeCast(Operation *op, const MaskInterval &in) const {
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return in;
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op) && in.min >= 0)
    return in;
  return std::nullopt;
}

std::optional<MaskInterval>
IntervalMath::computeBinary(Operation *op, const MaskInterval &lhs,
                            const MaskInterval &rhs) const {
  bool arePositive = lhs.min >= 0 && rhs.min >= 0;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::AddIOp) { return add(lhs, rhs); })
      .Case([&](arith::SubIOp) { return subtract(lhs, rhs); })
      .Case([&](arith::MulIOp) -> Result {
        Result product = multiply(lhs, rhs);
        return product ? product : multiply(rhs, lhs);
      })
      .Case([&](arith::DivSIOp) { return divide<arith::DivSIOp>(lhs, rhs); })
      .Case([&](arith::FloorDivSIOp) {
        return divide<arith::FloorDivSIOp>(lhs, rhs);
      })
      .Case([&](arith::DivUIOp) -> Result {
        return arePositive ? divide<arith::DivUIOp>(lhs, rhs) : Result();
      })
      .Case([&](arith::ShRUIOp) -> Result {
        if (!arePositive || rhs.min != rhs.max || rhs.max > 31)
          return std::nullopt;
        int64_t divisor = int64_t(1) << rhs.max;
        Value value = b.index(divisor);
        return divide<arith::DivUIOp>(
            lhs, {0, value, value, divisor, divisor, Value(), 0});
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) -> Result {
        return arePositive ? findRemainder(lhs, rhs) : Result();
      })
      .Case([&](arith::AndIOp) -> Result {
        if (!arePositive || rhs.min != rhs.max || rhs.max >= kFar ||
            !llvm::isPowerOf2_64(rhs.max + 1))
          return std::nullopt;
        Value value = b.index(rhs.max + 1);
        return findRemainder(
            lhs, {0, value, value, rhs.max + 1, rhs.max + 1, Value(), 0});
      })
      .Case([&](arith::MinSIOp) {
        return findExtremum(lhs, rhs, /*isLarger=*/false);
      })
      .Case([&](arith::MaxSIOp) {
        return findExtremum(lhs, rhs, /*isLarger=*/true);
      })
      .Case([&](arith::MinUIOp) -> Result {
        return arePositive ? findExtremum(lhs, rhs, /*isLarger=*/false)
                           : Result();
      })
      .Case([&](arith::MaxUIOp) -> Result {
        return arePositive ? findExtremum(lhs, rhs, /*isLarger=*/true)
                           : Result();
      })
      .Default([](Operation *) { return Result(); });
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Whether both have one number besides the token.
static bool isSame(const MaskInterval &lhs, const MaskInterval &rhs) {
  return lhs.lo == lhs.hi && rhs.lo == rhs.hi;
}

std::optional<MaskInterval> IntervalMath::add(const MaskInterval &lhs,
                                              const MaskInterval &rhs) const {
  MaskInterval sum;
  sum.token = lhs.token + rhs.token;
  if (lhs.divisor || rhs.divisor || std::abs(sum.token) > 1 ||
      llvm::AddOverflow(lhs.min, rhs.min, sum.min) ||
      llvm::AddOverflow(lhs.max, rhs.max, sum.max))
    return std::nullopt;
  sum.lo = b.add(lhs.lo, rhs.lo);
  sum.hi = isSame(lhs, rhs) ? sum.lo : b.add(lhs.hi, rhs.hi);
  return sum;
}

std::optional<MaskInterval>
IntervalMath::subtract(const MaskInterval &lhs, const MaskInterval &rhs) const {
  MaskInterval difference;
  difference.token = lhs.token - rhs.token;
  if (lhs.divisor || rhs.divisor || std::abs(difference.token) > 1 ||
      llvm::SubOverflow(lhs.min, rhs.max, difference.min) ||
      llvm::SubOverflow(lhs.max, rhs.min, difference.max))
    return std::nullopt;
  difference.lo = b.sub(lhs.lo, rhs.hi);
  difference.hi = isSame(lhs, rhs) ? difference.lo : b.sub(lhs.hi, rhs.lo);
  return difference;
}

std::optional<MaskInterval>
IntervalMath::multiply(const MaskInterval &lhs, const MaskInterval &rhs) const {
  if (!lhs.isFree() || !rhs.isExact() || (rhs.min < 0 && rhs.max > 0))
    return std::nullopt;
  int64_t products[4];
  bool wraps = false;
  for (auto [i, pair] :
       llvm::enumerate(std::initializer_list<std::pair<int64_t, int64_t>>{
           {lhs.min, rhs.min},
           {lhs.min, rhs.max},
           {lhs.max, rhs.min},
           {lhs.max, rhs.max}}))
    wraps |= llvm::MulOverflow(pair.first, pair.second, products[i]) != 0;
  if (wraps)
    return std::nullopt;
  MaskInterval product;
  product.min = *std::min_element(products, products + 4);
  product.max = *std::max_element(products, products + 4);
  product.lo = b.mul(lhs.lo, rhs.lo);
  product.hi = lhs.lo == lhs.hi ? product.lo : b.mul(lhs.hi, rhs.lo);
  if (rhs.min < 0)
    std::swap(product.lo, product.hi);
  return product;
}

template <typename OpTy>
std::optional<MaskInterval>
IntervalMath::divide(const MaskInterval &lhs, const MaskInterval &rhs) const {
  if (!rhs.isExact() || rhs.min <= 0)
    return std::nullopt;
  if (lhs.token == 1 && !lhs.divisor && lhs.min == 0 &&
      matchPattern(lhs.lo, m_Zero()) && matchPattern(lhs.hi, m_Zero()))
    return MaskInterval{1,      lhs.lo, lhs.hi, 0, kMostPosition / rhs.min,
                        rhs.lo, rhs.max};
  if (!lhs.isFree())
    return std::nullopt;
  auto build = [&](Value value) {
    return b.builder.createOrFold<OpTy>(b.loc, value, rhs.lo);
  };
  MaskInterval quotient;
  // A floor is at most one below.
  if (lhs.min >= 0)
    quotient.min = lhs.min / rhs.max;
  else if (llvm::SubOverflow(lhs.min / rhs.min, int64_t(1), quotient.min))
    return std::nullopt;
  quotient.max = lhs.max >= 0 ? lhs.max / rhs.min : lhs.max / rhs.max;
  quotient.lo = build(lhs.lo);
  quotient.hi = lhs.lo == lhs.hi ? quotient.lo : build(lhs.hi);
  return quotient;
}

std::optional<MaskInterval>
IntervalMath::findRemainder(const MaskInterval &lhs,
                            const MaskInterval &rhs) const {
  if (!lhs.isFree() || !rhs.isExact() || rhs.min <= 0)
    return std::nullopt;
  MaskInterval remainder;
  remainder.min = 0;
  remainder.max = std::min(lhs.max, rhs.max - 1);
  remainder.lo = b.rem(lhs.lo, rhs.lo);
  if (lhs.lo == lhs.hi) {
    remainder.hi = remainder.lo;
    return remainder;
  }
  Value isOne = b.equal(b.div(lhs.lo, rhs.lo), b.div(lhs.hi, rhs.lo));
  remainder.lo = select(isOne, remainder.lo, none);
  remainder.hi =
      select(isOne, b.rem(lhs.hi, rhs.lo), b.sub(rhs.lo, b.index(1)));
  return remainder;
}

std::optional<MaskInterval> IntervalMath::findExtremum(const MaskInterval &lhs,
                                                       const MaskInterval &rhs,
                                                       bool isLarger) const {
  if (!lhs.isFree() || !rhs.isFree())
    return std::nullopt;
  auto choose = [&](Value one, Value other) {
    return isLarger ? b.max(one, other) : b.min(one, other);
  };
  auto chooseKnown = [&](int64_t one, int64_t other) {
    return isLarger ? std::max(one, other) : std::min(one, other);
  };
  return MaskInterval{0,
                      choose(lhs.lo, rhs.lo),
                      choose(lhs.hi, rhs.hi),
                      chooseKnown(lhs.min, rhs.min),
                      chooseKnown(lhs.max, rhs.max),
                      Value(),
                      0};
}

std::optional<MaskInterval>
IntervalMath::choose(Value any, Value all, const MaskInterval &then,
                     const MaskInterval &otherwise) const {
  if (!then.isFree() || !otherwise.isFree())
    return std::nullopt;
  MaskInterval hull{0,
                    b.min(then.lo, otherwise.lo),
                    b.max(then.hi, otherwise.hi),
                    std::min(then.min, otherwise.min),
                    std::max(then.max, otherwise.max),
                    Value(),
                    0};
  if (!any)
    return hull;
  auto chooseBound = [&](Value ifAll, Value ifSome, Value ifNone) {
    return select(all, ifAll, select(any, ifSome, ifNone));
  };
  hull.lo = chooseBound(then.lo, hull.lo, otherwise.lo);
  hull.hi = chooseBound(then.hi, hull.hi, otherwise.hi);
  return hull;
}

bool IntervalMath::bringNear(MaskInterval &lhs, MaskInterval &rhs) const {
  auto isNear = [](const MaskInterval &each, int64_t most) {
    return each.min >= -most && each.max <= most;
  };
  if (!isNear(lhs, kFar / 4) && !isNear(rhs, kFar / 4))
    return false;
  for (MaskInterval *each : {&lhs, &rhs}) {
    if (isNear(*each, kFar / 4))
      continue;
    if (each->token)
      return false;
    bool isExact = each->isExact();
    each->lo = b.max(b.min(each->lo, b.index(kFar)), b.index(-kFar));
    each->hi = isExact ? each->lo
                       : b.max(b.min(each->hi, b.index(kFar)), b.index(-kFar));
  }
  return true;
}
