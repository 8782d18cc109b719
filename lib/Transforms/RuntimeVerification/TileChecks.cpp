//===- TileChecks.cpp - Checks of tiles, matrices and fragments -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks the place of an op on `lanes` elements of a tile's row.
template <typename OpTy>
static void checkTile(CheckBuilder &c, OpTy op, int64_t lanes) {
  tma::TileLayout layout = op.getTile().getType().getLayout();
  c.checkBelow(op.getRow(), c.index(layout.rows), "row");
  c.checkBelow(op.getColumn(), c.index(layout.columns - lanes + 1), "column");
  c.checkMultiple(op.getColumn(), lanes, "column");
}

static void checkMatrices(CheckBuilder &c, ArrayRef<MatrixPart> parts) {
  for (const MatrixPart &part : parts) {
    std::string row = (part.name + "_row").str();
    c.checkBelow(part.row, c.index(part.getLastRow() + 1), row);
    c.checkMultiple(part.row, part.rowUnit, row);
    std::string column = (part.name + "_column").str();
    c.checkBelow(part.column, c.index(part.getLastColumn() + 1), column);
    c.checkMultiple(part.column, part.columnUnit, column);
  }
}

/// Checks that stored rows are inside a memref. The region has their places.
/// They have `columns` columns from `column` on, or no column if it is null.
static void checkStoredRows(CheckBuilder &c, Region &region, Value memref,
                            Value column, int64_t columns) {
  OpBuilder::InsertionGuard guard(c.b);
  Operation *yield = region.front().getTerminator();
  c.b.setInsertionPoint(yield);
  Value isStored = yield->getOperands().back();
  auto check = [&](Value place, int64_t dim, StringRef what) {
    Value checked = arith::SelectOp::create(c.b, isStored, place, c.index(0));
    Value bound = arith::SelectOp::create(c.b, isStored, c.getSize(memref, dim),
                                          c.index(1));
    c.checkBelow(checked, bound, (what + " of dimension " + Twine(dim)).str());
  };
  ValueRange indices = yield->getOperands().drop_back();
  for (auto [dim, place] : llvm::enumerate(indices))
    check(place, dim, "index");
  if (!column)
    return;
  Value last = arith::AddIOp::create(c.b, column, c.index(columns - 1));
  // The last index of a column before the first one may wrap.
  check(column, indices.size(), "index");
  check(last, indices.size(), "last index");
}

/// Checks the place of a part of a tile in tensor memory.
template <typename OpTy> static void checkFragment(CheckBuilder &c, OpTy op) {
  TmemTileType tile = op.getTile().getType();
  int64_t columns = tile.getColumns(), n = op.countColumns();
  c.checkBelow(op.getColumn(), c.index(columns - n + 1), "column");
  c.checkMultiple(op.getColumn(), tile.getFragmentUnit(), "column");
  if (tile.isSplitByLanes()) {
    Value inHalf =
        arith::RemUIOp::create(c.b, op.getColumn(), c.index(columns / 2));
    c.checkBelow(inHalf, c.index(columns / 2 - n + 1),
                 "column in half of the tile");
  }
  if (op.getHalf())
    c.checkBelow(op.getHalf(), c.index(2), "half");
}

/// Checks the place of columns of a tile in tensor memory.
static void checkView(CheckBuilder &c, TmemViewOp op) {
  TmemTileType tile = op.getTile().getType();
  int64_t perWord = tile.getColumns() / tile.getWidth();
  int64_t columns = op.getView().getType().getWidth() * perWord;
  c.checkBelow(op.getColumn(), c.index(tile.getColumns() - columns + 1),
               "column");
  c.checkMultiple(op.getColumn(), perWord, "column");
}

void kvcache::checkTiles(CheckBuilder &c, Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](TileLoadOp op) { checkTile(c, op, getNumLanes(op.getType())); })
      .Case([&](ClusterLoadOp op) {
        checkTile(c, op, getNumLanes(op.getType()));
      })
      .Case([&](TileStoreOp op) {
        checkTile(c, op, getNumLanes(op.getValue().getType()));
      })
      .Case([&](TileOffsetOp op) { checkTile(c, op, /*lanes=*/1); })
      .Case<MmaOp, TmemMmaOp, FragmentMmaOp>(
          [&](auto op) { checkMatrices(c, op.getParts()); })
      .Case<FragmentLoadOp, FragmentStoreOp>(
          [&](auto op) { checkMatrices(c, op.getPart()); })
      .Case([&](StoreRowsOp op) {
        FragmentType type = op.getValue().getType();
        checkStoredRows(c, op.getBody(), op.getMemref(), op.getColumn(),
                        type.hasColumns() ? type.getColumns() : 0);
      })
      .Case([&](StoreSplitOp op) {
        checkStoredRows(c, op.getBody(), op.getAccs(), op.getColumn(),
                        op.getAcc().getType().getColumns());
        checkStoredRows(c, op.getBody(), op.getStates(), /*column=*/Value(),
                        /*columns=*/0);
      })
      .Case<TmemLoadOp, TmemStoreOp>([&](auto op) { checkFragment(c, op); })
      .Case([&](TmemViewOp op) { checkView(c, op); });
}
