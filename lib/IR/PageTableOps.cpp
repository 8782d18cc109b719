//===- PageTableOps.cpp - Page-table prefetch -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableRange.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Provable ranges
//===----------------------------------------------------------------------===//

/// The operation that bundled the tensors behind a view or collection, or null
/// where it is not in sight.
static Operation *getCollectionOp(Value cache) {
  if (auto view = cache.getDefiningOp<PagedViewOp>())
    cache = view.getCollection();
  if (auto view = cache.getDefiningOp<ContinuousViewOp>())
    cache = view.getCollection();
  return cache.getDefiningOp();
}

/// Whether `value` is a constant in `[0, size)`, for a static size.
static bool isConstantBelow(Value value, int64_t size) {
  std::optional<int64_t> constant = getConstantIntValue(value);
  return constant && !ShapedType::isDynamic(size) && *constant >= 0 &&
         *constant < size;
}

bool kvcache::isLengthInRange(Value cache, Value batch) {
  Operation *op = getCollectionOp(cache);
  if (auto paged = dyn_cast_if_present<PagedCollectionOp>(op))
    return isConstantBelow(batch,
                           paged.getCacheLengths().getType().getDimSize(0));
  if (auto continuous = dyn_cast_if_present<ContinuousCollectionOp>(op))
    return isConstantBelow(
        batch, continuous.getCacheLengths().getType().getDimSize(0));
  return false;
}

bool kvcache::areEntriesInRange(Value cache, Value batch, Value token,
                                int64_t tokens) {
  Operation *op = getCollectionOp(cache);
  if (auto continuous = dyn_cast_if_present<ContinuousCollectionOp>(op))
    return isConstantBelow(batch,
                           continuous.getLookupTable().getType().getDimSize(0));
  auto paged = dyn_cast_if_present<PagedCollectionOp>(op);
  if (!paged)
    return false;
  MemRefType table = paged.getLookupTable().getType();
  std::optional<int64_t> first = getConstantIntValue(token);
  if (!first || *first < 0 || table.isDynamicDim(1) ||
      !isConstantBelow(batch, table.getDimSize(0)))
    return false;
  int64_t pageSize = paged.getCollection().getType().getPageSize();
  // All in terms that can't overflow: tokens are fewer than 2^31 pages.
  int64_t lastPage =
      *first / pageSize + (*first % pageSize + tokens - 1) / pageSize;
  return lastPage < table.getDimSize(1);
}

//===----------------------------------------------------------------------===//
// PopulateOp
//===----------------------------------------------------------------------===//

TypedValue<CacheTypeInterface> PopulateOp::getAccessedCache() {
  return getCache();
}
Value PopulateOp::getAccessedBatch() { return getBatch(); }
Value PopulateOp::getAccessedToken() { return getBase(); }
int64_t PopulateOp::getAccessedTokens() {
  return getRows().getType().getRows();
}

Speculation::Speculatability PopulateOp::getSpeculatability() {
  return speculateIf(areEntriesInRange(getCache(), getBatch(), getBase(),
                                       getAccessedTokens()));
}

int64_t PopulateOp::getKnownBaseAlignment() {
  return getBaseAlignment().value_or(getRows().getType().getRows());
}

/// The largest power of two that divides a positive number.
static int64_t lowPow2(int64_t value) { return value & -value; }

int64_t PopulateOp::getReadWidth() {
  RowIndicesType rows = getRows().getType();
  if (rows.getNumPages() == 1)
    return 1;
  return std::min({lowPow2(rows.getNumPages()),
                   lowPow2(getKnownBaseAlignment() / rows.getPageSize()),
                   int64_t(8)});
}

LogicalResult PopulateOp::verify() {
  // (C1); 0 stands for the absent page size of a continuous cache
  RowIndicesType rows = getRows().getType();
  CacheTypeInterface cache = getCache().getType();
  int64_t pageSize = cache.isPaged() ? cache.getPageSize() : 0;
  if (rows.getPageSize() != pageSize) {
    if (!pageSize)
      return emitOpError("expects 'rows' to have no page_size over a "
                         "continuous cache, got ")
             << rows.getPageSize();
    InFlightDiagnostic diag = emitOpError("expects 'rows' to have the cache's "
                                          "page_size (")
                              << pageSize << "), got ";
    if (rows.getPageSize())
      return diag << rows.getPageSize();
    return diag << "none";
  }
  // (C2)
  int64_t alignment = getKnownBaseAlignment();
  if (alignment <= 0)
    return emitOpError("expects 'base_alignment' to be positive, got ")
           << alignment;
  if (rows.getNumPages() > 1 && alignment % pageSize != 0)
    return emitOpError("expects 'base_alignment' to be a multiple of page_size "
                       "(")
           << pageSize << ") over several pages, got " << alignment;
  return success();
}

//===----------------------------------------------------------------------===//
// GetRowOp
//===----------------------------------------------------------------------===//

Speculation::Speculatability GetRowOp::getSpeculatability() {
  // One page needs no lookup, and a constant offset takes what was read.
  RowIndicesType rows = getRows().getType();
  return speculateIf(rows.getNumPages() == 1 ||
                     isConstantBelow(getOffset(), rows.getRows()));
}
