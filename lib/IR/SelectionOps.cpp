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
// top_rows
//===----------------------------------------------------------------------===//

void TopRowsOp::getEffects(Effects &effects) {
  addWholeCacheEffects(*this, /*readsCache=*/false, /*writesCache=*/false,
                       effects);
}

void TopRowsOp::build(OpBuilder &b, OperationState &state, Value scores,
                      Value cache, Value rowOffsets, Value ids, Value tokens) {
  build(b, state, TypeRange(getTensorTypes({ids, tokens})), scores, cache,
        rowOffsets, ids, tokens, /*lengths=*/Value(), IntegerAttr(), UnitAttr(),
        UnitAttr(), UnitAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
}

MutableOperandRange TopRowsOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), getIdsMutable().getOperandNumber(),
                             getTokens() ? 2 : 1);
}

int64_t TopRowsOp::countSelected() {
  int64_t columns = cast<ShapedType>(getIds().getType()).getShape().back();
  return (columns - countTailColumns()) / countColumnsOfCandidate();
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

LogicalResult TopRowsOp::verify() {
  if (failed(verifySelectionShapes(*this)))
    return failure();
  // (C4)
  if (getTail() && !(getWhole() && getExpand()))
    return emitOpError("expects 'tail' only with 'whole' and 'expand'");
  if (failed(verifySelectedCount(*this)))
    return failure();
  // (C5)
  if (isa<ScalesType>(getCache().getType()))
    return emitOpError("expects 'cache' not to be a view of scales");
  // (C6)
  for (NamedValue written :
       {NamedValue("ids", getIds()), NamedValue("tokens", getTokens())})
    if (failed(verifyApart(
            *this, written,
            {{"row_offsets", getRowOffsets()}, {"lengths", getLengths()}})))
      return failure();
  if (failed(verifyApart(*this, {"tokens", getTokens()}, {{"ids", getIds()}})))
    return failure();
  return verifyResults(*this);
}
