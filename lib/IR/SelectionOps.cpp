//===- SelectionOps.cpp - Selection of tokens -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeCacheRules.h"

#include "kvcache/IR/SelectionOps.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// pool
//===----------------------------------------------------------------------===//

void PoolOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/true, /*writesCache=*/false,
                       effects);
}

void PoolOp::build(OpBuilder &b, OperationState &state, Value cache,
                   Value rowOffsets, Value pooled, int64_t width,
                   Value newRows) {
  Type result;
  if (isa<RankedTensorType>(pooled.getType()))
    result = pooled.getType();
  build(b, state, result, cache, rowOffsets, pooled, newRows,
        b.getI64IntegerAttr(width), UnitAttr(), UnitAttr(), UnitAttr(),
        IntegerAttr());
}

/// (C4), (C5), (C6).
static LogicalResult verifyPoolKind(PoolOp op) {
  if (op.getGated() && op.getMinMax())
    return op.emitOpError("expects at most one of 'gated' and 'min_max'");
  if (op.getOverlap() && !op.getGated())
    return op.emitOpError("expects 'overlap' only with 'gated'");
  if (!op.getGated())
    return success();
  auto cache = cast<CacheTypeInterface>(op.getCache().getType());
  int64_t divisor = op.countGatedParts() * cache.getLanesPerStored();
  if (cache.getHeadSize() % divisor != 0)
    return op.emitOpError()
           << "expects the head size of 'cache' to be a "
           << "multiple of " << divisor << ", got " << cache.getHeadSize();
  return success();
}

/// The elements of a summary of a head.
static int64_t countPooled(PoolOp op) {
  int64_t size =
      cast<CacheTypeInterface>(op.getCache().getType()).getHeadSize();
  if (op.getGated())
    return size / op.countGatedParts();
  return op.getMinMax() ? 2 * size : size;
}

LogicalResult PoolOp::verify() {
  if (failed(verifyPoolKind(*this)))
    return failure();
  // (C1)
  auto cache = cast<CacheTypeInterface>(getCache().getType());
  if (failed(verifyDense(*this, "pooled", getPooled().getType(),
                         cache.getNumHeads(), countPooled(*this))))
    return failure();
  // (C3)
  if (failed(verifyElementsApart(*this, {{"pooled", getPooled()}})))
    return failure();
  // (C7)
  if (Value rows = getNewRows())
    if (failed(verifyDense(*this, "new_rows", rows.getType(),
                           cache.getNumHeads(), cache.getHeadSize())) ||
        failed(verifyCommonSize(*this, "rows", {{getPooled(), 0}, {rows, 0}})))
      return failure();
  // (C8)
  if (failed(verifyApart(*this, {"pooled", getPooled()},
                         {{"new_rows", getNewRows()}})))
    return failure();
  return verifyResults(*this);
}

//===----------------------------------------------------------------------===//
// index_scores
//===----------------------------------------------------------------------===//

void IndexScoresOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/true, /*writesCache=*/false,
                       effects);
}

void IndexScoresOp::build(OpBuilder &b, OperationState &state, Value q,
                          Value cache, Value rowOffsets, Value scores,
                          Value weights) {
  build(b, state, TypeRange(getTensorTypes(scores)), q, cache, rowOffsets,
        scores, weights, /*lengths=*/Value(), /*q_scales=*/Value(), UnitAttr(),
        UnitAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
}

int64_t IndexScoresOp::countQScales() {
  return getQScales()
             ? cast<ShapedType>(getQScales().getType()).getShape().back()
             : 0;
}

/// (C1), (C9), (C10).
static LogicalResult verifyIndexQueries(IndexScoresOp op) {
  auto cache = cast<CacheTypeInterface>(op.getCache().getType());
  int64_t heads = cast<ShapedType>(op.getQ().getType()).getDimSize(1);
  if (ShapedType::isDynamic(heads) || heads < 1 ||
      heads > IndexScoresOp::kMostHeads)
    return op.emitOpError() << "expects 'q' to have a static number of heads "
                            << "from 1 to " << IndexScoresOp::kMostHeads
                            << ", got " << op.getQ().getType();
  int64_t elements = cache.getHeadSize();
  if (elements % IndexScoresOp::kElements != 0)
    return op.emitOpError() << "expects the head size of 'cache' to be a "
                            << "multiple of " << IndexScoresOp::kElements
                            << ", got " << elements;
  Value scales = op.getQScales();
  if (getElementTypeOrSelf(op.getQ()).isInteger() != bool(scales))
    return op.emitOpError()
           << "expects 'q' to have elements of i8 with "
           << "'q_scales', and only then, got " << op.getQ().getType();
  if (!scales)
    return verifyRows(op, "q", op.getQ().getType(), heads, elements);
  if (failed(verifyRows(op, "q", op.getQ().getType(), heads, elements / 2)))
    return failure();
  return verifyRows(op, "q_scales", scales.getType(), heads,
                    elements / IndexScoresOp::kElements);
}

/// (C3), (C4).
static LogicalResult verifyIndexScores(IndexScoresOp op) {
  auto scores = cast<ShapedType>(op.getScores().getType());
  int64_t heads = cast<ShapedType>(op.getQ().getType()).getDimSize(1);
  int64_t rank = op.getSumHeads() ? 2 : 3;
  if (scores.getRank() != rank)
    return op.emitOpError()
           << "expects 'scores' to have " << rank << " dimensions "
           << (op.getSumHeads() ? "with" : "without") << " 'sum_heads', got "
           << scores;
  if (!op.getSumHeads() && scores.getDimSize(1) != heads)
    return op.emitOpError() << "expects 'scores' to have the " << heads
                            << " heads of 'q', got " << scores;
  if (op.getWeights() &&
      cast<ShapedType>(op.getWeights().getType()).getDimSize(1) != heads)
    return op.emitOpError()
           << "expects 'weights' to have the " << heads << " heads of 'q', got "
           << op.getWeights().getType();
  return verifyCommonSize(op, "rows",
                          {{op.getQ(), 0},
                           {op.getQScales(), 0},
                           {op.getWeights(), 0},
                           {op.getScores(), 0}});
}

LogicalResult IndexScoresOp::verify() {
  // (C2)
  auto cache = cast<CacheTypeInterface>(getCache().getType());
  if (cache.getNumHeads() != 1)
    return emitOpError() << "expects 'cache' to have one head, got "
                         << cache.getNumHeads();
  if (cache.hasZeroPoints())
    return emitOpError("expects 'cache' to have no zero points");
  if (failed(verifyIndexQueries(*this)) || failed(verifyIndexScores(*this)))
    return failure();
  // (C5)
  if (failed(verifyApart(*this, {"scores", getScores()},
                         {{"q", getQ()}, {"weights", getWeights()}})))
    return failure();
  // (C7)
  if (failed(verifyElementsApart(*this, {{"scores", getScores()}})))
    return failure();
  // (C8)
  if (getWidth() > 1 && !getLengths())
    return emitOpError("expects 'lengths' with 'width' (") << getWidth() << ")";
  // (C11)
  if (failed(verifyBatch(*this, "lengths", getLengths(), getRowOffsets())))
    return failure();
  return verifyResults(*this);
}

//===----------------------------------------------------------------------===//
// top_rows
//===----------------------------------------------------------------------===//

void TopRowsOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/false, /*writesCache=*/false,
                       effects);
  if (getWorkspace())
    effects.emplace_back(MemoryEffects::Write::get(),
                         &getWorkspaceMutable()[0]);
}

void TopRowsOp::build(OpBuilder &b, OperationState &state, Value scores,
                      Value cache, Value rowOffsets, Value ids, Value tokens) {
  build(b, state, TypeRange(getTensorTypes({ids, tokens})), scores, cache,
        rowOffsets, ids, tokens, /*lengths=*/Value(), /*workspace=*/Value(),
        IntegerAttr(), UnitAttr(), UnitAttr(), UnitAttr(), IntegerAttr(),
        IntegerAttr(), IntegerAttr());
}

MutableOperandRange TopRowsOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), getIdsMutable().getOperandNumber(),
                             getTokens() ? 2 : 1);
}

int64_t TopRowsOp::countSelected() {
  int64_t columns = cast<ShapedType>(getIds().getType()).getShape().back();
  return (columns - countTailColumns()) / countColumnsOfCandidate();
}

int64_t TopRowsOp::countSplits() {
  if (!getWorkspace())
    return 1;
  return getWorkspace().getType().getShape().take_back(2).front();
}

/// (C1).
static LogicalResult verifySelectionShapes(TopRowsOp op) {
  auto scores = cast<ShapedType>(op.getScores().getType());
  auto ids = cast<ShapedType>(op.getIds().getType());
  if (ids.getRank() != scores.getRank())
    return op.emitOpError() << "expects 'ids' to have the " << scores.getRank()
                            << " dimensions of 'scores', got " << ids;
  if (op.getTokens() &&
      cast<ShapedType>(op.getTokens().getType()).getShape() != ids.getShape())
    return op.emitOpError("expects 'tokens' to have the shape of 'ids', got ")
           << op.getTokens().getType() << " and " << ids;
  for (int64_t dimension = 0; dimension + 1 < ids.getRank(); ++dimension)
    if (failed(verifyCommonSize(
            op, dimension ? "heads" : "rows",
            {{op.getScores(), dimension}, {op.getIds(), dimension}})))
      return failure();
  return success();
}

/// (C2), (C3).
static LogicalResult verifySelectedCount(TopRowsOp op) {
  auto ids = cast<ShapedType>(op.getIds().getType());
  int64_t columns = ids.getShape().back();
  if (ShapedType::isDynamic(columns))
    return op.emitOpError("expects 'ids' to have a static number of columns, "
                          "got ")
           << ids;
  int64_t unit = op.countColumnsOfCandidate(), tail = op.countTailColumns();
  if (columns < tail + unit || (columns - tail) % unit != 0)
    return op.emitOpError() << "expects 'ids' to have " << unit
                            << " columns for each selected candidate and "
                            << tail << " for the tail, got " << columns;
  int64_t selected = op.countSelected();
  if (selected > TopRowsOp::kMostSelected)
    return op.emitOpError()
           << "expects 'ids' to have columns for at most "
           << TopRowsOp::kMostSelected << " candidates, got " << selected;
  uint64_t forced = op.getFirst(), last = op.getLast();
  if (forced <= static_cast<uint64_t>(selected) &&
      last <= static_cast<uint64_t>(selected) - forced)
    return success();
  return op.emitOpError() << "expects 'first' (" << forced << ") and 'last' ("
                          << last << ") to be at most the " << selected
                          << " selected candidates together";
}

/// (C9).
static LogicalResult verifySelectionWorkspace(TopRowsOp op) {
  if (!op.getWorkspace())
    return success();
  MemRefType type = op.getWorkspace().getType();
  int64_t rank = cast<ShapedType>(op.getScores().getType()).getRank();
  if (type.getRank() != rank + 1)
    return op.emitOpError() << "expects 'workspace' to have " << rank + 1
                            << " dimensions, got " << type;
  for (int64_t dimension = 0; dimension + 1 < rank; ++dimension)
    if (failed(verifyCommonSize(
            op, dimension ? "heads" : "rows",
            {{op.getScores(), dimension}, {op.getWorkspace(), dimension}})))
      return failure();
  int64_t splits = op.countSplits(), numbers = 2 * op.countSelected();
  if (splits < 2 || splits > TopRowsOp::kMostSplits)
    return op.emitOpError()
           << "expects 'workspace' to have a static number of splits from 2 to "
           << TopRowsOp::kMostSplits << ", got " << type;
  if (type.getShape().back() != numbers)
    return op.emitOpError() << "expects 'workspace' to have " << numbers
                            << " numbers for each split, got " << type;
  return verifyDefaultSpace(op, "workspace", type);
}

LogicalResult TopRowsOp::verify() {
  if (failed(verifySelectionShapes(*this)))
    return failure();
  // (C4)
  if (getTail() && !(getWhole() && getExpand()))
    return emitOpError("expects 'tail' only with 'whole' and 'expand'");
  if (failed(verifySelectedCount(*this)))
    return failure();
  if (failed(verifySelectionWorkspace(*this)))
    return failure();
  // (C5)
  if (isa<ScalesType>(getCache().getType()))
    return emitOpError("expects 'cache' not to be a view of scales");
  // (C6)
  if (failed(verifyApart(*this, {"tokens", getTokens()}, {{"ids", getIds()}})))
    return failure();
  // (C8)
  if (failed(verifyElementsApart(*this, {{"ids", getIds()},
                                         {"tokens", getTokens()},
                                         {"workspace", getWorkspace()}})))
    return failure();
  // (C10)
  if (failed(verifyBatch(*this, "lengths", getLengths(), getRowOffsets())))
    return failure();
  return verifyResults(*this);
}
