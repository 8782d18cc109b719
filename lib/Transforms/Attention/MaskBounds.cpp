//===- MaskBounds.cpp - Which tokens a mask admits ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskBounds.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The largest position: numbers of tokens have 32 bits.
constexpr int64_t kMostPosition = std::numeric_limits<int32_t>::max();
/// A bound beyond all positions and their sums. Larger numbers compare with
/// those as it does.
constexpr int64_t kFar = int64_t(1) << 40;

/// Integers of a region: `token * t + r`, with a token t and r from `lo` to
/// `hi`, or `t / divisor`. They are numbers, without wrapping.
struct Interval {
  int64_t token = 0;
  Value lo, hi;
  /// The least and the largest number that is known at compile time.
  int64_t min, max;
  Value divisor;
  int64_t mostDivisor = 0;

  bool isFree() const { return token == 0 && !divisor; }
  bool isExact() const { return isFree() && lo == hi; }
};

/// Conditions of a region: `any` and `all` if they do not depend on the token,
/// else the tokens for which they hold.
struct Condition {
  Value any, all;
  AdmittedTokens tokens;
};

class BoundsBuilder {
public:
  /// Without `tokens`, finds them.
  BoundsBuilder(const IndexBuilder &builder, Region &mask, const RowBox &box,
                std::optional<IndexBounds> tokens)
      : b(builder), mask(mask), box(box), none(b.index(0)) {
    unsigned first = mask.getNumArguments() - 4;
    setArgument(first, {box.sequence, box.sequence});
    setArgument(first + 1, box.heads);
    setArgument(first + 2, box.queries);
    BlockArgument token = mask.getArgument(first + 3);
    if (tokens) {
      setArgument(first + 3, *tokens);
    } else {
      varying.insert(token);
      intervals[token] = {1, none, none, 0, kMostPosition, Value(), 0};
    }
  }

  Condition compute() {
    for (Operation &op : mask.front().without_terminator()) {
      if (isVarying(&op))
        bound(&op);
      else
        clone(&op);
    }
    return getCondition(mask.front().getTerminator()->getOperand(0));
  }

  AdmittedTokens getTokens(const Condition &condition) {
    if (!condition.any)
      return condition.tokens;
    auto getRange = [&](Value isIn) -> TokenRange {
      return {select(isIn, none, box.tokens), select(isIn, box.tokens, none)};
    };
    return {getRange(condition.any), getRange(condition.all)};
  }

private:
  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  void setArgument(unsigned number, const IndexBounds &bounds) {
    BlockArgument argument = mask.getArgument(number);
    intervals[argument] = {0,       bounds.lo, bounds.hi, 0, kMostPosition,
                           Value(), 0};
    if (bounds.lo == bounds.hi)
      clones.map(argument, bounds.lo);
    else
      varying.insert(argument);
  }

  bool isVarying(Operation *op) {
    WalkResult result = op->walk([&](Operation *nested) {
      return llvm::any_of(nested->getOperands(),
                          [&](Value value) { return varying.contains(value); })
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    return result.wasInterrupted();
  }

  void clone(Operation *op) {
    if (op->getNumResults() == 0)
      return;
    Operation *copy = b.builder.clone(*op, clones);
    SmallVector<Value> folded;
    if (succeeded(b.builder.tryFold(copy, folded)) && !folded.empty())
      copy->erase();
    else
      folded.assign(copy->result_begin(), copy->result_end());
    std::optional<Interval> known =
        folded.size() == 1 ? computeInterval(op) : std::nullopt;
    for (auto [result, value] : llvm::zip_equal(op->getResults(), folded)) {
      clones.map(result, value);
      std::optional<Interval> exact = makeExact(value);
      if (!exact)
        continue;
      if (known) {
        exact->min = std::max(exact->min, known->min);
        exact->max = std::min(exact->max, known->max);
      }
      intervals[result] = *exact;
    }
  }

  void bound(Operation *op) {
    for (Value result : op->getResults())
      varying.insert(result);
    if (op->getNumResults() != 1)
      return;
    Value result = op->getResult(0);
    if (result.getType().isInteger(1))
      conditions[result] = computeCondition(op);
    else if (std::optional<Interval> interval = computeInterval(op))
      intervals[result] = *interval;
  }

  static int64_t getWidth(Type type) {
    return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  }
  static bool isInteger(Type type) {
    return type.isIndex() ||
           (type.isSignlessInteger() && type.getIntOrFloatBitWidth() > 1 &&
            type.getIntOrFloatBitWidth() <= 64);
  }

  /// The interval of a value outside of the region, or of a clone.
  std::optional<Interval> makeExact(Value value) {
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
    return Interval{0, value, value, min, max, Value(), 0};
  }

  std::optional<Interval> getInterval(Value value) {
    if (auto known = intervals.find(value); known != intervals.end())
      return known->second;
    if (varying.contains(value) || clones.contains(value))
      return std::nullopt;
    return makeExact(value);
  }

  Condition getCondition(Value value) {
    if (auto known = conditions.find(value); known != conditions.end())
      return known->second;
    if (varying.contains(value))
      return getUnknown();
    Value exact = clones.lookupOrDefault(value);
    return {exact, exact, {}};
  }

  Condition getUnknown() {
    Interval token = intervals[mask.getArguments().back()];
    if (token.isFree())
      return {constant(true), constant(false), {}};
    return {Value(), Value(), {{none, box.tokens}, {box.tokens, none}}};
  }

  Value constant(bool value) {
    return arith::ConstantOp::create(b.builder, b.loc,
                                     b.builder.getBoolAttr(value));
  }
  Value select(Value condition, Value then, Value otherwise) {
    return b.builder.createOrFold<arith::SelectOp>(b.loc, condition, then,
                                                   otherwise);
  }
  Value conjoin(Value lhs, Value rhs) {
    return b.builder.createOrFold<arith::AndIOp>(b.loc, lhs, rhs);
  }
  Value disjoin(Value lhs, Value rhs) {
    return b.builder.createOrFold<arith::OrIOp>(b.loc, lhs, rhs);
  }
  Value invert(Value value) {
    return b.builder.createOrFold<arith::XOrIOp>(b.loc, value, constant(true));
  }

  //===--------------------------------------------------------------------===//
  // Integers
  //===--------------------------------------------------------------------===//

  /// The interval of an op without wrapping, or none.
  std::optional<Interval> computeInterval(Operation *op) {
    Type type = op->getNumResults() ? op->getResult(0).getType() : Type();
    if (!type || !isInteger(type) || op->getNumOperands() == 0)
      return std::nullopt;
    std::optional<Interval> result;
    if (auto choice = dyn_cast<arith::SelectOp>(op)) {
      result = computeSelect(choice);
    } else {
      SmallVector<Interval> in;
      for (Value operand : op->getOperands()) {
        std::optional<Interval> interval = getInterval(operand);
        if (!interval)
          return std::nullopt;
        in.push_back(*interval);
      }
      result = in.size() == 1   ? computeCast(op, in[0])
               : in.size() == 2 ? computeBinary(op, in[0], in[1])
                                : std::nullopt;
    }
    int64_t width = getWidth(type);
    if (!result || result->min < llvm::minIntN(width) ||
        result->max > llvm::maxIntN(width))
      return std::nullopt;
    return result;
  }

  std::optional<Interval> computeCast(Operation *op, const Interval &in) {
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
      return in;
    if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op) && in.min >= 0)
      return in;
    return std::nullopt;
  }

  std::optional<Interval> computeBinary(Operation *op, const Interval &lhs,
                                        const Interval &rhs) {
    using Result = std::optional<Interval>;
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

  std::optional<Interval> add(const Interval &lhs, const Interval &rhs) {
    Interval sum;
    sum.token = lhs.token + rhs.token;
    if (lhs.divisor || rhs.divisor || std::abs(sum.token) > 1 ||
        llvm::AddOverflow(lhs.min, rhs.min, sum.min) ||
        llvm::AddOverflow(lhs.max, rhs.max, sum.max))
      return std::nullopt;
    sum.lo = b.add(lhs.lo, rhs.lo);
    sum.hi = isSame(lhs, rhs) ? sum.lo : b.add(lhs.hi, rhs.hi);
    return sum;
  }

  std::optional<Interval> subtract(const Interval &lhs, const Interval &rhs) {
    Interval difference;
    difference.token = lhs.token - rhs.token;
    if (lhs.divisor || rhs.divisor || std::abs(difference.token) > 1 ||
        llvm::SubOverflow(lhs.min, rhs.max, difference.min) ||
        llvm::SubOverflow(lhs.max, rhs.min, difference.max))
      return std::nullopt;
    difference.lo = b.sub(lhs.lo, rhs.hi);
    difference.hi = isSame(lhs, rhs) ? difference.lo : b.sub(lhs.hi, rhs.lo);
    return difference;
  }

  /// Whether both have one number besides the token.
  static bool isSame(const Interval &lhs, const Interval &rhs) {
    return lhs.lo == lhs.hi && rhs.lo == rhs.hi;
  }

  /// Multiplies by one number, whose sign is known at compile time.
  std::optional<Interval> multiply(const Interval &lhs, const Interval &rhs) {
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
    Interval product;
    product.min = *std::min_element(products, products + 4);
    product.max = *std::max_element(products, products + 4);
    product.lo = b.mul(lhs.lo, rhs.lo);
    product.hi = lhs.lo == lhs.hi ? product.lo : b.mul(lhs.hi, rhs.lo);
    if (rhs.min < 0)
      std::swap(product.lo, product.hi);
    return product;
  }

  /// Divides by one positive number. `t / c` stays as it is.
  template <typename OpTy>
  std::optional<Interval> divide(const Interval &lhs, const Interval &rhs) {
    if (!rhs.isExact() || rhs.min <= 0)
      return std::nullopt;
    if (lhs.token == 1 && !lhs.divisor && lhs.min == 0 &&
        matchPattern(lhs.lo, m_Zero()) && matchPattern(lhs.hi, m_Zero()))
      return Interval{1,      lhs.lo, lhs.hi, 0, kMostPosition / rhs.min,
                      rhs.lo, rhs.max};
    if (!lhs.isFree())
      return std::nullopt;
    auto build = [&](Value value) {
      return b.builder.createOrFold<OpTy>(b.loc, value, rhs.lo);
    };
    Interval quotient;
    quotient.lo = build(lhs.lo);
    quotient.hi = lhs.lo == lhs.hi ? quotient.lo : build(lhs.hi);
    // A floor is at most one below.
    quotient.min = lhs.min >= 0 ? lhs.min / rhs.max : lhs.min / rhs.min - 1;
    quotient.max = lhs.max >= 0 ? lhs.max / rhs.min : lhs.max / rhs.max;
    return quotient;
  }

  /// Divides numbers that are not negative by one positive number.
  std::optional<Interval> findRemainder(const Interval &lhs,
                                        const Interval &rhs) {
    if (!lhs.isFree() || !rhs.isExact() || rhs.min <= 0)
      return std::nullopt;
    Interval remainder;
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

  /// The lesser or the larger of two numbers.
  std::optional<Interval> findExtremum(const Interval &lhs, const Interval &rhs,
                                       bool isLarger) {
    if (!lhs.isFree() || !rhs.isFree())
      return std::nullopt;
    auto choose = [&](Value one, Value other) {
      return isLarger ? b.max(one, other) : b.min(one, other);
    };
    auto chooseKnown = [&](int64_t one, int64_t other) {
      return isLarger ? std::max(one, other) : std::min(one, other);
    };
    return Interval{0,
                    choose(lhs.lo, rhs.lo),
                    choose(lhs.hi, rhs.hi),
                    chooseKnown(lhs.min, rhs.min),
                    chooseKnown(lhs.max, rhs.max),
                    Value(),
                    0};
  }

  std::optional<Interval> computeSelect(arith::SelectOp op) {
    std::optional<Interval> then = getInterval(op.getTrueValue()),
                            otherwise = getInterval(op.getFalseValue());
    if (!then || !otherwise || !then->isFree() || !otherwise->isFree())
      return std::nullopt;
    Interval hull{0,
                  b.min(then->lo, otherwise->lo),
                  b.max(then->hi, otherwise->hi),
                  std::min(then->min, otherwise->min),
                  std::max(then->max, otherwise->max),
                  Value(),
                  0};
    Condition condition = getCondition(op.getCondition());
    if (!condition.any)
      return hull;
    auto choose = [&](Value ifAll, Value ifSome, Value ifNone) {
      return select(condition.all, ifAll,
                    select(condition.any, ifSome, ifNone));
    };
    hull.lo = choose(then->lo, hull.lo, otherwise->lo);
    hull.hi = choose(then->hi, hull.hi, otherwise->hi);
    return hull;
  }

  //===--------------------------------------------------------------------===//
  // Conditions
  //===--------------------------------------------------------------------===//

  Condition computeCondition(Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      return computeComparison(compare);
    if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
      return getUnknown();
    Condition lhs = getCondition(op->getOperand(0)),
              rhs = getCondition(op->getOperand(1));
    if (isa<arith::AndIOp>(op))
      return computeAnd(lhs, rhs);
    if (isa<arith::OrIOp>(op))
      return computeOr(lhs, rhs);
    // Folders move constants to the right.
    if (!lhs.any || !matchPattern(op->getOperand(1), m_One()))
      return getUnknown();
    return {invert(lhs.all), invert(lhs.any), {}};
  }

  Condition computeAnd(const Condition &lhs, const Condition &rhs) {
    if (lhs.any && rhs.any)
      return {conjoin(lhs.any, rhs.any), conjoin(lhs.all, rhs.all), {}};
    AdmittedTokens l = getTokens(lhs), r = getTokens(rhs);
    auto intersect = [&](const TokenRange &one, const TokenRange &other) {
      return TokenRange{b.max(one.from, other.from), b.min(one.to, other.to)};
    };
    return {
        Value(), Value(), {intersect(l.any, r.any), intersect(l.all, r.all)}};
  }

  /// The tokens that all rows see are those of the longer range.
  Condition computeOr(const Condition &lhs, const Condition &rhs) {
    if (lhs.any && rhs.any)
      return {disjoin(lhs.any, rhs.any), disjoin(lhs.all, rhs.all), {}};
    AdmittedTokens l = getTokens(lhs), r = getTokens(rhs);
    TokenRange hull{b.min(l.any.from, r.any.from), b.max(l.any.to, r.any.to)};
    Value isShorter =
        b.less(b.sub(l.all.to, l.all.from), b.sub(r.all.to, r.all.from));
    TokenRange longer{select(isShorter, r.all.from, l.all.from),
                      select(isShorter, r.all.to, l.all.to)};
    return {Value(), Value(), {hull, longer}};
  }

  Condition computeComparison(arith::CmpIOp op) {
    std::optional<Interval> lhs = getInterval(op.getLhs()),
                            rhs = getInterval(op.getRhs());
    if (!lhs || !rhs)
      return getUnknown();
    using Predicate = arith::CmpIPredicate;
    Predicate predicate = op.getPredicate();
    bool arePositive = lhs->min >= 0 && rhs->min >= 0;
    switch (predicate) {
    case Predicate::eq:
      return computeEqual(*lhs, *rhs);
    case Predicate::ne: {
      Condition equal = computeEqual(*lhs, *rhs);
      return equal.any ? Condition{invert(equal.all), invert(equal.any), {}}
                       : getUnknown();
    }
    case Predicate::ult:
    case Predicate::ule:
    case Predicate::ugt:
    case Predicate::uge:
      if (!arePositive)
        return getUnknown();
      break;
    default:
      break;
    }
    switch (predicate) {
    case Predicate::slt:
    case Predicate::ult:
      return computeLess(*lhs, *rhs, /*orEqual=*/false);
    case Predicate::sle:
    case Predicate::ule:
      return computeLess(*lhs, *rhs, /*orEqual=*/true);
    case Predicate::sgt:
    case Predicate::ugt:
      return computeLess(*rhs, *lhs, /*orEqual=*/false);
    default:
      return computeLess(*rhs, *lhs, /*orEqual=*/true);
    }
  }

  Value compare(Value lhs, Value rhs, bool orEqual) {
    return b.builder.createOrFold<arith::CmpIOp>(
        b.loc, orEqual ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt,
        lhs, rhs);
  }

  /// Moves numbers that are far from all positions nearer, so that differences
  /// do not wrap. Fails if other numbers are not near.
  bool bringNear(Interval &lhs, Interval &rhs) {
    auto isNear = [](const Interval &each, int64_t most) {
      return each.min >= -most && each.max <= most;
    };
    if (!isNear(lhs, kFar / 4) && !isNear(rhs, kFar / 4))
      return false;
    for (Interval *each : {&lhs, &rhs}) {
      if (isNear(*each, kFar / 4))
        continue;
      if (each->token)
        return false;
      bool isExact = each->isExact();
      each->lo = b.max(b.min(each->lo, b.index(kFar)), b.index(-kFar));
      each->hi = isExact
                     ? each->lo
                     : b.max(b.min(each->hi, b.index(kFar)), b.index(-kFar));
    }
    return true;
  }

  /// `lhs < rhs`, or `lhs <= rhs`.
  Condition computeLess(Interval lhs, Interval rhs, bool orEqual) {
    if (lhs.divisor || rhs.divisor)
      return getUnknown();
    int64_t token = lhs.token - rhs.token;
    if (token == 0)
      return {compare(lhs.lo, rhs.hi, orEqual),
              compare(lhs.hi, rhs.lo, orEqual),
              {}};
    if (std::abs(token) > 1 || !bringNear(lhs, rhs))
      return getUnknown();
    TokenRange any{none, box.tokens}, all = any;
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

  Condition computeEqual(Interval lhs, Interval rhs) {
    if (lhs.isFree() && rhs.isFree()) {
      Value any =
          conjoin(compare(lhs.lo, rhs.hi, true), compare(rhs.lo, lhs.hi, true));
      Value all =
          conjoin(compare(lhs.hi, rhs.lo, true), compare(rhs.hi, lhs.lo, true));
      return {any, all, {}};
    }
    if (rhs.divisor)
      std::swap(lhs, rhs);
    if (rhs.divisor || (lhs.divisor && rhs.token))
      return getUnknown();
    if (!bringNear(lhs, rhs))
      return getUnknown();
    Value one = b.index(1);
    if (lhs.divisor) {
      // t / c == r: tokens [c * r, c * (r + 1)).
      if (lhs.mostDivisor > kMostPosition || rhs.max > kMostPosition ||
          rhs.min < -kMostPosition)
        return getUnknown();
      auto getBegin = [&](Value number) { return b.mul(number, lhs.divisor); };
      auto getEnd = [&](Value number) { return getBegin(b.add(number, one)); };
      return {Value(),
              Value(),
              {{getBegin(rhs.lo), getEnd(rhs.hi)},
               {getBegin(rhs.hi), getEnd(rhs.lo)}}};
    }
    if (lhs.token < rhs.token)
      std::swap(lhs, rhs);
    if (lhs.token - rhs.token != 1)
      return getUnknown();
    Value lo = b.sub(rhs.lo, lhs.hi), hi = b.sub(rhs.hi, lhs.lo);
    return {Value(), Value(), {{lo, b.add(hi, one)}, {hi, b.add(lo, one)}}};
  }

  const IndexBuilder &b;
  Region &mask;
  const RowBox &box;
  Value none;
  /// The values that depend on arguments with several numbers.
  DenseSet<Value> varying;
  /// The clones of other values.
  IRMapping clones;
  DenseMap<Value, Interval> intervals;
  DenseMap<Value, Condition> conditions;
};

} // namespace

AdmittedTokens kvcache::computeTokens(const IndexBuilder &b, Region &mask,
                                      const RowBox &box) {
  BoundsBuilder bounds(b, mask, box, std::nullopt);
  AdmittedTokens tokens = bounds.getTokens(bounds.compute());
  for (TokenRange *range : {&tokens.any, &tokens.all}) {
    range->from = b.max(range->from, b.index(0));
    range->to = b.min(range->to, box.tokens);
  }
  return tokens;
}

AdmittedPairs kvcache::computePairs(const IndexBuilder &b, Region &mask,
                                    const RowBox &box,
                                    const IndexBounds &tokens) {
  Condition condition = BoundsBuilder(b, mask, box, tokens).compute();
  return {condition.any, condition.all};
}
