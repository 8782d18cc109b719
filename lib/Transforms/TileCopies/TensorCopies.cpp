//===- TensorCopies.cpp - Copies by tensor maps ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorCopies.h"

#include "Gathers.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/TMAOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kvcache;

/// `compute(first)` to `compute(first + count - 1)`, 32-bit numbers, in every
/// lane. Each lane computes one of them, so that their reads overlap. `count`
/// is at most 32.
static SmallVector<Value> computeInLanes(const IndexBuilder &b,
                                         const Issuer &issuer, Value first,
                                         int64_t count,
                                         function_ref<Value(Value)> compute) {
  SmallVector<Value> values;
  // Few are sooner computed than passed on.
  constexpr int64_t few = 2;
  if (issuer.numLanes == 1 || count <= few) {
    for (int64_t i = 0; i < count; ++i)
      values.push_back(compute(b.add(first, b.index(i))));
    return values;
  }
  Value own = b.min(issuer.lane, b.index(count - 1));
  Value computed = b.toI32(compute(b.add(first, own)));
  for (int64_t i = 0; i < count; ++i)
    values.push_back(getFromLane(b, computed, b.index(i)));
  return values;
}

/// The coordinate of boxes without a valid row that depends on the page table.
constexpr int64_t kNoPage = -1;

//===----------------------------------------------------------------------===//
// Consecutive tokens
//===----------------------------------------------------------------------===//

/// The first view of the same collection, which has the same pages.
static Value getFirstView(TypedValue<CacheTypeInterface> cache) {
  auto first = cache.getDefiningOp<LayerViewOpInterface>();
  if (!first)
    return cache;
  for (Operation *user : first.getCollection().getUsers())
    if (isa<LayerViewOpInterface>(user) &&
        user->getBlock() == first->getBlock() && user->isBeforeInBlock(first))
      first = cast<LayerViewOpInterface>(user);
  return first->getResult(0);
}

/// Whether both read the same rows, of one collection.
static bool haveSameRows(TileCopyOpInterface lhs, TileCopyOpInterface rhs) {
  return getFirstView(lhs.getAccessedCache()) ==
             getFirstView(rhs.getAccessedCache()) &&
         lhs.getAccessedBatch() == rhs.getAccessedBatch() &&
         lhs.getAccessedToken() == rhs.getAccessedToken() &&
         lhs.getValid() == rhs.getValid() &&
         lhs.getTile().getType().getRows() == rhs.getTile().getType().getRows();
}

/// How many of the box's rows are valid, for `valid` rows of the tile.
static Value getValidRows(const IndexBuilder &b, Value valid, Value row,
                          int64_t boxRows) {
  return b.min(b.max(b.sub(valid, row), b.index(0)), b.index(boxRows));
}

/// The coordinate of the box at row `row` of the tile that depends on the page
/// table: the page, or for a ragged box the row of the view.
Value TensorCopies::lookUpBox(const Boxes &boxes, Value row) const {
  TileCopyOpInterface op = boxes.op;
  Value view = getFirstView(op.getAccessedCache());
  Type index = b.builder.getIndexType();
  Value token = b.add(op.getAccessedToken(), row);
  if (!boxes.valid && op.getViewType().isPaged())
    return PageIdOp::create(b.builder, b.loc, index, view,
                            op.getAccessedBatch(), token);
  auto getRow = [&]() -> Value {
    return RowIndexOp::create(b.builder, b.loc, index, view,
                              op.getAccessedBatch(), token, /*page=*/Value());
  };
  if (!boxes.valid)
    return getRow();
  // Where no row is valid, the page need not exist.
  return b.selectIf(b.less(row, boxes.valid), getRow,
                    [&] { return b.index(kNoPage); });
}

size_t TensorCopies::findBoxes(TileCopyOpInterface op) {
  int64_t boxRows = op.getDescriptor().getType().getRows();
  for (auto [index, each] : llvm::enumerate(allBoxes))
    if (each.boxRows == boxRows && haveSameRows(each.op, op))
      return index;
  int64_t rows = op.getTile().getType().getRows();
  Boxes boxes = {op, boxRows, op.getValid(), {}};
  // Within the tile 32 bits will do.
  if (boxes.valid)
    boxes.valid = b.min(b.max(boxes.valid, b.index(0)), b.index(rows));
  int64_t numBoxes = rows / boxRows;
  for (int64_t first = 0; first < numBoxes; first += BlockBuilder::kWarp)
    llvm::append_range(
        boxes.found,
        computeInLanes(b, issuer, b.index(first),
                       std::min(numBoxes - first, BlockBuilder::kWarp),
                       [&](Value box) {
                         return lookUpBox(boxes, b.mul(box, b.index(boxRows)));
                       }));
  allBoxes.push_back(std::move(boxes));
  return allBoxes.size() - 1;
}

/// The coordinates of a box.
SmallVector<Value> TensorCopies::getCoordinates(const Boxes &boxes,
                                                TileCopyOpInterface op,
                                                int64_t box) const {
  CacheTypeInterface cache = op.getViewType();
  Value row = b.index(box * boxes.boxRows);
  Value found = boxes.found[box];
  int64_t lanesPerElement = op.getDescriptor().getType().getElementBytes() /
                            op.getTileLayout().elementBytes;
  Value column = b.div(op.getAccessedElement(),
                       b.index(cache.getLanesPerStored() * lanesPerElement));
  if (!boxes.valid && cache.isPaged()) {
    // The page is known: only the row in it is of use.
    auto coords = TMACoordsOp::create(b.builder, b.loc, op.getAccessedCache(),
                                      op.getAccessedBatch(),
                                      b.add(op.getAccessedToken(), row));
    return {column, op.getAccessedHead(), coords.getRow(), found};
  }
  Value boxRows = b.index(boxes.boxRows);
  if (!boxes.valid)
    return {column, b.index(0), op.getAccessedHead(), b.add(found, boxRows)};
  // Rows that are not valid are out of bounds in dimension 1.
  Value valid = getValidRows(b, boxes.valid, row, boxes.boxRows);
  return {column, b.sub(boxRows, valid), op.getAccessedHead(),
          b.add(found, valid)};
}

void TensorCopies::issueBox(const Boxes &boxes, TileCopyOpInterface op,
                            int64_t box) const {
  TypedValue<TMATileType> descriptor = op.getDescriptor();
  SmallVector<Value> coordinates = getCoordinates(boxes, op, box);
  auto load = [&](Value from, ValueRange at) {
    TMALoadOp::create(
        b.builder, b.loc, from, at, barrier.group, barrier.index, op.getTile(),
        boxes.found.size() == 1 ? Value() : b.index(box * boxes.boxRows),
        op.getL2HintAttr(), op.isMulticast());
  };
  auto withZeros = dyn_cast<AsyncLoadTileOp>(op.getOperation());
  if (!withZeros || !withZeros.getZeros())
    return load(descriptor, coordinates);

  TypedValue<TMATileType> zeros = withZeros.getZeros();
  size_t rank = zeros.getType().getBox().size();
  Value hasRow = b.less(b.index(box * boxes.boxRows), boxes.valid);
  if (rank == coordinates.size()) {
    // At `kNoPage` it has nothing, whatever the other coordinates are: only the
    // pointers differ, which both descriptors are further down.
    auto cast = UnrealizedConversionCastOp::create(
        b.builder, b.loc, descriptor.getType(), Value(zeros));
    Value chosen = arith::SelectOp::create(b.builder, b.loc, hasRow, descriptor,
                                           cast.getResult(0));
    return load(chosen, coordinates);
  }
  SmallVector<Value> before(rank, b.index(0));
  before.back() = b.index(-zeros.getType().getBox().back());
  b.runIf(
      hasRow, [&] { load(descriptor, coordinates); },
      [&] { load(zeros, before); });
}

void TensorCopies::issueBoxes(const Copy &copy) const {
  const Boxes &boxes = allBoxes[*copy.boxes];
  b.runIf(issuer.isElected, [&] {
    for (size_t box = 0; box < boxes.found.size(); ++box)
      issueBox(boxes, copy.op, box);
  });
}

//===----------------------------------------------------------------------===//
// Any copy
//===----------------------------------------------------------------------===//

void TensorCopies::add(TileCopyOpInterface copy) {
  if (copy.getRowIds())
    copies.push_back({copy, std::nullopt});
  else
    copies.push_back({copy, findBoxes(copy)});
}

void TensorCopies::issue() const {
  for (const Copy &copy : copies)
    if (copy.boxes)
      issueBoxes(copy);
    else
      emitGather(b, copy.op, barrier, issuer);
}
