//===- ScoreRegions.cpp - Regions of attention in kernels -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreRegions.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// Stands for the row or column of a value that does not depend on it.
constexpr int64_t kAny = -1;

//===----------------------------------------------------------------------===//
// RegionCloner
//===----------------------------------------------------------------------===//

RegionCloner::Clones &RegionCloner::getClones(Value value) {
  Axes own = axes.get(value);
  return clones[{own.row ? row : kAny, own.column ? column : kAny}];
}

void RegionCloner::set(BlockArgument argument, int64_t newRow,
                       int64_t newColumn, Value value) {
  row = newRow;
  column = newColumn;
  getClones(argument).whole.map(argument, value);
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    lanes = vector.getNumElements();
}

Value RegionCloner::getWhole(Value value) {
  if (!axes.contains(value))
    return value;
  Clones &known = getClones(value);
  if (Value whole = known.whole.lookupOrNull(value))
    return whole;
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(known.lanes[lane].lookup(value));
  Value whole = vector::FromElementsOp::create(
      builder, value.getLoc(), VectorType::get(lanes, value.getType()),
      elements);
  known.whole.map(value, whole);
  return whole;
}

Value RegionCloner::getLane(Value value, int64_t lane) {
  if (!axes.get(value).column)
    return getWhole(value);
  IRMapping &known = getClones(value).lanes[lane];
  if (!known.contains(value))
    known.map(value, vector::ExtractOp::create(builder, value.getLoc(),
                                               getWhole(value), lane));
  return known.lookup(value);
}

/// Whether the op may compute on vectors in place of scalars.
bool RegionCloner::isVector(Operation *op) {
  auto areScalars = [](TypeRange types) {
    return llvm::all_of(types, VectorType::isValidElementType);
  };
  return OpTrait::hasElementwiseMappableTraits(op) &&
         areScalars(op->getOperandTypes()) && areScalars(op->getResultTypes());
}

bool RegionCloner::isCloned(Operation *op) {
  Value result = op->getResult(0);
  Clones &known = getClones(result);
  return known.whole.contains(result) ||
         (!known.lanes.empty() &&
          known.lanes.rbegin()->second.contains(result));
}

Operation *RegionCloner::cloneWith(Operation *op,
                                   function_ref<Value(Value)> getClone) {
  IRMapping mapping;
  for (Value value : getUsedValues(op))
    mapping.map(value, getClone(value));
  return builder.clone(*op, mapping);
}

void RegionCloner::cloneOnVectors(Operation *op) {
  IRMapping mapping;
  for (Value value : op->getOperands()) {
    Value whole = getWhole(value);
    if (!isa<VectorType>(whole.getType()))
      whole = vector::BroadcastOp::create(
          builder, op->getLoc(), VectorType::get(lanes, whole.getType()),
          whole);
    mapping.map(value, whole);
  }
  Operation *clone = builder.clone(*op, mapping);
  for (auto [result, cloned] :
       llvm::zip_equal(op->getResults(), clone->getResults())) {
    cloned.setType(VectorType::get(lanes, result.getType()));
    getClones(result).whole.map(result, cloned);
  }
}

void RegionCloner::cloneOp(Operation *op) {
  bool hasLanes = lanes > 1 && axes.get(op->getResult(0)).column;
  if (hasLanes && isVector(op))
    return cloneOnVectors(op);
  for (int64_t lane = 0; lane < (hasLanes ? lanes : 1); ++lane) {
    Operation *clone = cloneWith(op, [&](Value value) {
      return hasLanes ? getLane(value, lane) : getWhole(value);
    });
    for (auto [result, cloned] :
         llvm::zip_equal(op->getResults(), clone->getResults())) {
      Clones &known = getClones(result);
      (hasLanes ? known.lanes[lane] : known.whole).map(result, cloned);
    }
  }
}

void RegionCloner::cloneOps(function_ref<bool(Operation *)> isWanted) {
  // An op without results computes nothing, since it writes nothing.
  for (Operation &op : region.front().without_terminator())
    if (op.getNumResults() && isWanted(&op) && !isCloned(&op))
      cloneOp(&op);
}

void RegionCloner::cloneForColumn(int64_t newColumn) {
  row = kAny;
  column = newColumn;
  cloneOps([&](Operation *op) { return !axes.get(op->getResult(0)).row; });
}

Value RegionCloner::clone(int64_t newRow, int64_t newColumn) {
  row = newRow;
  column = newColumn;
  cloneOps([](Operation *) { return true; });
  return getWhole(region.front().getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// ScoreRegions
//===----------------------------------------------------------------------===//

/// The arguments of both regions, as numbers from the last one.
constexpr unsigned kKey = 0, kQuery = 1, kHead = 2, kSequence = 3, kScore = 4;

SmallVector<Axes> kvcache::getScoreAxes(Region &region) {
  SmallVector<Axes> axes(region.getNumArguments());
  axes[axes.size() - 1 - kKey] = {false, true};
  for (unsigned fromLast : {kQuery, kHead})
    axes[axes.size() - 1 - fromLast] = {true, false};
  if (axes.size() > kScore)
    axes[axes.size() - 1 - kScore] = {true, true};
  return axes;
}

static BlockArgument getArgument(Region &region, unsigned fromLast) {
  return region.getArgument(region.getNumArguments() - 1 - fromLast);
}

/// Broadcasts `value` to the lanes of `like`, if that is a vector.
static Value spread(const Frame &frame, Value value, Value like) {
  auto vector = dyn_cast<VectorType>(like.getType());
  if (!vector || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(frame.builder, frame.loc,
                                     vector.clone(value.getType()), value);
}

ScoreRegions::ScoreRegions(const Frame &frame, AttentionOp op,
                           const QueryRows &rows, ScoreLanes lanes)
    : frame(frame), op(op), rows(rows), lanes(lanes), f(frame) {
  bool isBound = false;
  auto make = [&](std::optional<RegionCloner> &cloner, Region *region) {
    if (!region)
      return;
    cloner.emplace(makeCloner(*region));
    isBound |= lanes == ScoreLanes::Rows ? cloner->getAxes().isRowBound()
                                         : cloner->getAxes().isColumnBound();
  };
  make(score, op.getScoreRegion());
  make(mask, op.getMaskRegion());
  if (isBound)
    last = frame.toI32(frame.sub(rows.tokens, frame.index(1)));
  set(kSequence, kAny, kAny, rows.batch);
}

RegionCloner ScoreRegions::makeCloner(Region &region) {
  SmallVector<Axes> arguments = getScoreAxes(region);
  if (lanes == ScoreLanes::Rows)
    for (Axes &axes : arguments)
      std::swap(axes.row, axes.column);
  return RegionCloner(frame.builder, region, arguments);
}

void ScoreRegions::set(unsigned fromLast, int64_t row, int64_t column,
                       Value value) {
  if (score)
    score->set(getArgument(*op.getScoreRegion(), fromLast), row, column, value);
  if (mask)
    mask->set(getArgument(*op.getMaskRegion(), fromLast), row, column, value);
}

Value ScoreRegions::clampToken(Value token) {
  Type type = frame.builder.getI32Type();
  if (auto vector = dyn_cast<VectorType>(token.getType()))
    type = vector.clone(type);
  auto convert = [&](Type type, Value value) {
    return frame.builder.createOrFold<arith::IndexCastUIOp>(frame.loc, type,
                                                            value);
  };
  Value number = convert(type, token);
  number = arith::MinUIOp::create(frame.builder, frame.loc, number,
                                  spread(frame, last, number));
  return convert(token.getType(), number);
}

void ScoreRegions::addRow(Value queryHead, Value i) {
  if (!score && !mask)
    return;
  set(kHead, rowCount, kAny, queryHead);
  set(kQuery, rowCount++, kAny, getQueryPosition(frame, op, rows, i));
}

void ScoreRegions::addColumn(Value token) {
  if (score || mask)
    set(kKey, kAny, columnCount++, last ? clampToken(token) : token);
}

void ScoreRegions::setRowLanes(Value queryHeads, Value positions) {
  set(kHead, kAny, 0, queryHeads);
  set(kQuery, kAny, 0, positions);
  if (score)
    score->cloneForColumn(0);
  if (mask)
    mask->cloneForColumn(0);
}

void ScoreRegions::addToken(Value token) {
  if (score || mask)
    set(kKey, rowCount++, kAny, last ? clampToken(token) : token);
}

Value ScoreRegions::apply(Value product, int64_t row, int64_t column) {
  return applyMask(applyScore(product, row, column), row, column);
}

Value ScoreRegions::applyScore(Value product, int64_t row, int64_t column) {
  if (!score)
    return product;
  score->set(getArgument(*op.getScoreRegion(), kScore), row, column, product);
  Value result = spread(frame, score->clone(row, column), product);
  return f.mul(result, f.constant(result, llvm::numbers::log2e));
}

Value ScoreRegions::applyMask(Value product, int64_t row, int64_t column) {
  if (!mask)
    return product;
  Value sees = spread(frame, mask->clone(row, column), product);
  Value none = f.constant(product, -std::numeric_limits<float>::infinity());
  return f.select(sees, product, none);
}
