//===- PageTableOps.cpp - Page-table prefetch -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/PageTableOps.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

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
  // The entries of a sequence may start anywhere in a csr table.
  CacheTypeInterface cache = getCache().getType();
  if (rows.getNumPages() == 1 || cache.getTable() == TableKind::CSR)
    return 1;
  return std::min({lowPow2(rows.getNumPages()),
                   lowPow2(getKnownBaseAlignment() / rows.getPageSize()),
                   int64_t(8)});
}

/// Formats the page size of row indices for a diagnostic.
static std::string describePageSize(int64_t pageSize) {
  if (pageSize == 0)
    return "none";
  return ShapedType::isDynamic(pageSize) ? "?" : std::to_string(pageSize);
}

LogicalResult PopulateOp::verify() {
  // (C1); 0 represents the absent page size of a continuous cache
  RowIndicesType rows = getRows().getType();
  CacheTypeInterface cache = getCache().getType();
  int64_t pageSize = cache.isPaged() ? cache.getPageSize() : 0;
  if (rows.getPageSize() != pageSize) {
    if (!pageSize)
      return emitOpError("expects 'rows' not to have a page_size for a "
                         "continuous cache, got ")
             << describePageSize(rows.getPageSize());
    return emitOpError("expects 'rows' to have the cache's page_size (")
           << describePageSize(pageSize) << "), got "
           << describePageSize(rows.getPageSize());
  }
  // (C2)
  int64_t alignment = getKnownBaseAlignment();
  if (alignment <= 0)
    return emitOpError("expects 'base_alignment' to be positive, got ")
           << alignment;
  if (rows.getNumPages() > 1 && alignment % pageSize != 0)
    return emitOpError("expects 'base_alignment' to be a multiple of page_size "
                       "(")
           << pageSize << ") for rows of several pages, got " << alignment;
  return success();
}

//===----------------------------------------------------------------------===//
// GetRowOp
//===----------------------------------------------------------------------===//

Speculation::Speculatability GetRowOp::getSpeculatability() {
  // Rows of one page need no lookup, and a constant offset uses an entry that
  // `populate` read.
  RowIndicesType rows = getRows().getType();
  std::optional<int64_t> offset = getConstantIntValue(getOffset());
  bool isKnown = offset && *offset >= 0 && *offset < rows.getRows();
  return speculateIf(rows.getNumPages() == 1 || isKnown);
}
