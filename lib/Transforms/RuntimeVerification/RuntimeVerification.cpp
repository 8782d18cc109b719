//===- RuntimeVerification.cpp - Checks of an op at run time --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/RuntimeVerification.h"

#include "Checks.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Checks the layer of a view.
static void checkView(CheckBuilder &c, LayerViewOpInterface op) {
  c.checkBelow(op.getLayer(), c.extent(Extent::Layers, op.getCollection()),
               "layer");
}

/// Checks that the page of a row's id exists, unless the id is negative.
static void checkEncodedRow(CheckBuilder &c, TMARowOp op) {
  TypedValue<CacheTypeInterface> cache = op.getCache();
  if (!cache.getType().isPaged())
    return;
  Value encoded = op.getEncoded();
  Value zero = c.index(0);
  Value negative =
      arith::CmpIOp::create(c.b, arith::CmpIPredicate::slt, encoded, zero);
  Value page = arith::DivUIOp::create(c.b, encoded, c.getPageSize(cache));
  Value checked = arith::SelectOp::create(c.b, negative, zero, page);
  c.checkBelow(checked, c.extent(Extent::Pages, cache),
               "page of the encoded row id");
}

/// Checks that pages, or blocks, lie whole rows apart, if the op counts rows
/// through them. Nothing is said of the distance of a single one.
static void checkRowDistance(CheckBuilder &c, Operation *op,
                             TypedValue<CacheTypeInterface> view) {
  if (arePagesWholeRowsApart(view) == true)
    return;
  int64_t row = view.getType().getTokenStride();
  if (row == 1)
    return;
  Value distance = c.extent(Extent::PageStride, view);
  createRowDistanceCheck(c.b, op, distance, c.extent(Extent::Pages, view), row);
  ++c.numChecks;
}

/// Returns the view whose rows the op counts through all pages; null if it
/// doesn't.
static TypedValue<CacheTypeInterface> getViewOfCountedRows(CheckBuilder &c,
                                                           Operation *op) {
  if (isa<NumKVRowsOp, RowIndexOp, PopulateOp>(op))
    return cast<TypedValue<CacheTypeInterface>>(op->getOperand(0));
  // In a continuous cache an id is the row itself.
  if (auto row = dyn_cast<TMARowOp>(op);
      row && row.getCache().getType().isPaged())
    return row.getCache();
  if (auto copy = dyn_cast<TileCopyOpInterface>(op);
      copy && copy.getRowIds() && !copy.getViewType().isPaged())
    return copy.getAccessedCache();
  if (isa<NumScaleRowsOp, ScaleRowIndexOp>(op))
    return c.getScales(cast<TypedValue<CacheTypeInterface>>(op->getOperand(0)));
  return {};
}

unsigned kvcache::insertRuntimeChecks(OpBuilder &builder, Location loc,
                                      Operation *op) {
  CheckBuilder c(builder, loc, op);
  if (TypedValue<CacheTypeInterface> view = getViewOfCountedRows(c, op))
    checkRowDistance(c, op, view);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AccessOpInterface op) { checkAccess(c, op); })
      .Case([&](BundleOpInterface op) { checkBundle(c, op); })
      .Case([&](LayerViewOpInterface op) { checkView(c, op); })
      .Case([&](GetRowOp op) {
        int64_t rows = op.getRows().getType().getRows();
        c.checkBelow(op.getOffset(), c.index(rows), "row offset");
      })
      .Case([&](TMARowOp op) { checkEncodedRow(c, op); })
      .Case([&](ColIndexOp op) {
        int64_t heads = op.getCache().getType().getNumHeads();
        c.checkBelow(op.getHead(), c.index(heads), "head");
      })
      .Default([&](Operation *op) { checkTiles(c, op); });
  return c.numChecks;
}
