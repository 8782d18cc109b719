//===- MaskConditions.cpp - Bounds of a mask's conditions -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskConditions.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace mlir::kvcache;

Value ConditionMath::constant(bool value) const {
  return arith::ConstantOp::create(b.builder, b.loc,
                                   b.builder.getBoolAttr(value));
}

Value ConditionMath::both(Value lhs, Value rhs) const {
  return b.builder.createOrFold<arith::AndIOp>(b.loc, lhs, rhs);
}

Value ConditionMath::either(Value lhs, Value rhs) const {
  return b.builder.createOrFold<arith::OrIOp>(b.loc, lhs, rhs);
}

Value ConditionMath::negate(Value value) const {
  return b.builder.createOrFold<arith::XOrIOp>(b.loc, value, constant(true));
}

Value ConditionMath::compare(Value lhs, Value rhs, bool orEqual) const {
  return b.builder.createOrFold<arith::CmpIOp>(
      b.loc, orEqual ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt,
      lhs, rhs);
}

MaskCondition ConditionMath::getUnknown() const {
  if (!searchesTokens)
    return {constant(true), constant(false), {}};
  return {Value(), Value(), {{none, tokens}, {tokens, none}}};
}

AdmittedTokens ConditionMath::getTokens(const MaskCondition &condition) const {
  if (!condition.any)
    return condition.tokens;
  auto getRange = [&](Value isIn) -> TokenRange {
    Value from = intervals.select(isIn, none, tokens);
    return {from, intervals.select(isIn, tokens, none)};
  };
  TokenRange any = getRange(condition.any);
  return {any, getRange(condition.all)};
}

MaskCondition ConditionMath::conjoin(const MaskCondition &lhs,
                                     const MaskCondition &rhs) const {
  if (lhs.any && rhs.any)
    return {both(lhs.any, rhs.any), both(lhs.all, rhs.all), {}};
  AdmittedTokens l = getTokens(lhs), r = getTokens(rhs);
  auto intersect = [&](const TokenRange &one, const TokenRange &other) {
    return TokenRange{b.max(one.from, other.from), b.min(one.to, other.to)};
  };
  return {Value(), Value(), {intersect(l.any, r.any), intersect(l.all, r.all)}};
}

MaskCondition ConditionMath::disjoin(const MaskCondition &lhs,
                                     const MaskCondition &rhs) const {
  if (lhs.any && rhs.any)
    return {either(lhs.any, rhs.any), either(lhs.all, rhs.all), {}};
  AdmittedTokens l = getTokens(lhs), r = getTokens(rhs);
  TokenRange hull{b.min(l.any.from, r.any.from), b.max(l.any.to, r.any.to)};
  Value isShorter =
      b.less(b.sub(l.all.to, l.all.from), b.sub(r.all.to, r.all.from));
  TokenRange longer{intervals.select(isShorter, r.all.from, l.all.from),
                    intervals.select(isShorter, r.all.to, l.all.to)};
  return {Value(), Value(), {hull, longer}};
}

MaskCondition ConditionMath::invert(const MaskCondition &condition) const {
  if (!condition.any)
    return getUnknown();
  Value any = negate(condition.all);
  return {any, negate(condition.any), {}};
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

MaskCondition ConditionMath::compare(arith::CmpIPredicate predicate,
                                     const MaskInterval &lhs,
                                     const MaskInterval &rhs) const {
  using Predicate = arith::CmpIPredicate;
  bool arePositive = lhs.min >= 0 && rhs.min >= 0;
  switch (predicate) {
  case Predicate::eq:
    return computeEqual(lhs, rhs);
  case Predicate::ne:
    return invert(computeEqual(lhs, rhs));
  case Predicate::slt:
    return computeLess(lhs, rhs, /*orEqual=*/false);
  case Predicate::sle:
    return computeLess(lhs, rhs, /*orEqual=*/true);
  case Predicate::sgt:
    return computeLess(rhs, lhs, /*orEqual=*/false);
  case Predicate::sge:
    return computeLess(rhs, lhs, /*orEqual=*/true);
  case Predicate::ult:
    return arePositive ? computeLess(lhs, rhs, /*orEqual=*/false)
                       : getUnknown();
  case Predicate::ule:
    return arePositive ? computeLess(lhs, rhs, /*orEqual=*/true) : getUnknown();
  case Predicate::ugt:
    return arePositive ? computeLess(rhs, lhs, /*orEqual=*/false)
                       : getUnknown();
  case Predicate::uge:
    return arePositive ? computeLess(rhs, lhs, /*orEqual=*/true) : getUnknown();
  }
  llvm_unreachable("all predicates have a rule");
}

MaskCondition ConditionMath::computeLess(MaskInterval lhs, MaskInterval rhs,
                                         bool orEqual) const {
  if (lhs.divisor || rhs.divisor)
    return getUnknown();
  int64_t token = lhs.token - rhs.token;
  if (token == 0)
    return {
        compare(lhs.lo, rhs.hi, orEqual), compare(lhs.hi, rhs.lo, orEqual), {}};
  if (std::abs(token) > 1 || !intervals.bringNear(lhs, rhs))
    return getUnknown();
  TokenRange any{none, tokens}, all = any;
  Value one = b.index(1);
  if (token == 1) {
    // t < r: the end of tokens.
    any.to = b.sub(rhs.hi, lhs.lo);
    all.to = b.sub(rhs.lo, lhs.hi);
    for (TokenRange *each : {&any, &all})
      if (orEqual)
        each->to = b.add(each->to, one);
  } else {
    any.from = b.sub(lhs.lo, rhs.hi);
    all.from = b.sub(lhs.hi, rhs.lo);
    for (TokenRange *each : {&any, &all})
      if (!orEqual)
        each->from = b.add(each->from, one);
  }
  return {Value(), Value(), {any, all}};
}

// t / c == r: tokens [c * r, c * (r + 1)).
MaskCondition ConditionMath::equalQuotient(const MaskInterval &quotient,
                                           const MaskInterval &numbers) const {
  Value one = b.index(1);
  if (quotient.mostDivisor > kMostPosition || numbers.max > kMostPosition ||
      numbers.min < -kMostPosition)
    return getUnknown();
  auto getBegin = [&](Value number) { return b.mul(number, quotient.divisor); };
  auto getEnd = [&](Value number) { return getBegin(b.add(number, one)); };
  return {Value(),
          Value(),
          {{getBegin(numbers.lo), getEnd(numbers.hi)},
           {getBegin(numbers.hi), getEnd(numbers.lo)}}};
}

MaskCondition ConditionMath::computeEqual(MaskInterval lhs,
                                          MaskInterval rhs) const {
  if (lhs.isFree() && rhs.isFree()) {
    Value any =
        both(compare(lhs.lo, rhs.hi, true), compare(rhs.lo, lhs.hi, true));
    Value all =
        both(compare(lhs.hi, rhs.lo, true), compare(rhs.hi, lhs.lo, true));
    return {any, all, {}};
  }
  if (rhs.divisor)
    std::swap(lhs, rhs);
  if (rhs.divisor || (lhs.divisor && rhs.token))
    return getUnknown();
  if (!intervals.bringNear(lhs, rhs))
    return getUnknown();
  Value one = b.index(1);
  if (lhs.divisor)
    return equalQuotient(lhs, rhs);
  if (lhs.token < rhs.token)
    std::swap(lhs, rhs);
  if (lhs.token - rhs.token != 1)
    return getUnknown();
  Value lo = b.sub(rhs.lo, lhs.hi), hi = b.sub(rhs.hi, lhs.lo);
  return {Value(), Value(), {{lo, b.add(hi, one)}, {hi, b.add(lo, one)}}};
}
