//===- MaskBounds.cpp - Which tokens a mask admits ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskConditions.h"

#include "kvcache/Support/RegionAxes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

class BoundsBuilder {
public:
  /// Without `tokens`, finds them.
  BoundsBuilder(const IndexBuilder &builder, Region &mask, const RowBox &box,
                std::optional<IndexBounds> tokens)
      : b(builder), mask(mask), none(b.index(0)), integers(b, none),
        math(integers, b, none, box.tokens, !tokens),
        axes(mask, getAxes(box, tokens)) {
    setArgument(0, {box.sequence, box.sequence});
    setArgument(1, box.heads);
    setArgument(2, box.queries);
    if (tokens)
      setArgument(3, *tokens);
    else
      intervals[mask.getArgument(3)] = {1,       none, none, 0, kMostPosition,
                                        Value(), 0};
  }

  AdmittedTokens computeTokens() { return math.getTokens(compute()); }

  MaskCondition compute() {
    // An op without results computes nothing, since it writes nothing.
    for (Operation &op : mask.front().without_terminator()) {
      if (op.getNumResults() == 0)
        continue;
      if (isVarying(op.getResult(0)))
        bound(&op);
      else
        clone(&op);
    }
    return getCondition(mask.front().getTerminator()->getOperand(0));
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
  }

  /// The axes of arguments with several numbers: one number is cloned.
  static SmallVector<Axes> getAxes(const RowBox &box,
                                   const std::optional<IndexBounds> &tokens) {
    auto isOne = [](const IndexBounds &bounds) {
      return bounds.lo == bounds.hi;
    };
    Axes sequence, head{!isOne(box.heads), false},
        query{!isOne(box.queries), false},
        token{false, !tokens || !isOne(*tokens)};
    return {sequence, head, query, token};
  }

  bool isVarying(Value value) const { return axes.get(value).any(); }

  void clone(Operation *op) {
    Operation *copy = b.builder.clone(*op, clones);
    SmallVector<Value> folded;
    if (succeeded(b.builder.tryFold(copy, folded)) && !folded.empty())
      copy->erase();
    else
      folded.assign(copy->result_begin(), copy->result_end());
    std::optional<MaskInterval> known =
        folded.size() == 1 ? computeInterval(op) : std::nullopt;
    for (auto [result, value] : llvm::zip_equal(op->getResults(), folded)) {
      clones.map(result, value);
      std::optional<MaskInterval> exact = integers.makeExact(value);
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
    if (op->getNumResults() != 1)
      return;
    Value result = op->getResult(0);
    if (result.getType().isInteger(1))
      conditions[result] = computeCondition(op);
    else if (std::optional<MaskInterval> interval = computeInterval(op))
      intervals[result] = *interval;
  }

  std::optional<MaskInterval> getInterval(Value value) {
    if (auto known = intervals.find(value); known != intervals.end())
      return known->second;
    if (isVarying(value) || clones.contains(value))
      return std::nullopt;
    return integers.makeExact(value);
  }

  MaskCondition getCondition(Value value) {
    if (auto known = conditions.find(value); known != conditions.end())
      return known->second;
    if (isVarying(value))
      return math.getUnknown();
    Value exact = clones.lookupOrDefault(value);
    return {exact, exact, {}};
  }

  //===--------------------------------------------------------------------===//
  // Integers
  //===--------------------------------------------------------------------===//

  std::optional<MaskInterval> computeSelect(arith::SelectOp op) {
    std::optional<MaskInterval> then = getInterval(op.getTrueValue()),
                                otherwise = getInterval(op.getFalseValue());
    if (!then || !otherwise)
      return std::nullopt;
    MaskCondition condition = getCondition(op.getCondition());
    return integers.choose(condition.any, condition.all, *then, *otherwise);
  }

  /// The interval of an op without wrapping, or none.
  std::optional<MaskInterval> computeInterval(Operation *op) {
    Type type = op->getNumResults() ? op->getResult(0).getType() : Type();
    if (!type || !IntervalMath::isInteger(type) || op->getNumOperands() == 0)
      return std::nullopt;
    std::optional<MaskInterval> result;
    if (auto choice = dyn_cast<arith::SelectOp>(op)) {
      result = computeSelect(choice);
    } else {
      SmallVector<MaskInterval> in;
      for (Value operand : op->getOperands()) {
        std::optional<MaskInterval> interval = getInterval(operand);
        if (!interval)
          return std::nullopt;
        in.push_back(*interval);
      }
      result = integers.compute(op, in);
    }
    int64_t width = IntervalMath::getWidth(type);
    if (!result || result->min < llvm::minIntN(width) ||
        result->max > llvm::maxIntN(width))
      return std::nullopt;
    return result;
  }

  MaskCondition computeCondition(Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      std::optional<MaskInterval> lhs = getInterval(compare.getLhs()),
                                  rhs = getInterval(compare.getRhs());
      return lhs && rhs ? math.compare(compare.getPredicate(), *lhs, *rhs)
                        : math.getUnknown();
    }
    if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
      return math.getUnknown();
    MaskCondition lhs = getCondition(op->getOperand(0)),
                  rhs = getCondition(op->getOperand(1));
    if (isa<arith::AndIOp>(op))
      return math.conjoin(lhs, rhs);
    if (isa<arith::OrIOp>(op))
      return math.disjoin(lhs, rhs);
    // Folders move constants to the right.
    if (!matchPattern(op->getOperand(1), m_One()))
      return math.getUnknown();
    return math.invert(lhs);
  }

  const IndexBuilder &b;
  Region &mask;
  Value none;
  IntervalMath integers;
  ConditionMath math;
  RegionAxes axes;
  /// The clones of values that are equal for all rows and tokens.
  IRMapping clones;
  DenseMap<Value, MaskInterval> intervals;
  DenseMap<Value, MaskCondition> conditions;
};

} // namespace

AdmittedTokens kvcache::computeTokens(const IndexBuilder &b, Region &mask,
                                      const RowBox &box) {
  AdmittedTokens tokens =
      BoundsBuilder(b, mask, box, std::nullopt).computeTokens();
  for (TokenRange *range : {&tokens.any, &tokens.all}) {
    range->from = b.max(range->from, b.index(0));
    range->to = b.min(range->to, box.tokens);
  }
  return tokens;
}

AdmittedPairs kvcache::computePairs(const IndexBuilder &b, Region &mask,
                                    const RowBox &box,
                                    const IndexBounds &tokens) {
  MaskCondition condition = BoundsBuilder(b, mask, box, tokens).compute();
  return {condition.any, condition.all};
}
