//===- Source.cpp - Rows of the cache that a copy reads -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/QueryOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Row ids
//===----------------------------------------------------------------------===//

/// The bytes of a row id.
static constexpr int64_t kIdBytes = 4;

int64_t Source::getIdsPerAccess() {
  TypedValue<MemRefType> all = copy.getRowIds();
  if (!all)
    return 1;
  auto aligned = all.getDefiningOp<memref::AssumeAlignmentOp>();
  auto [strides, offset] = all.getType().getStridesAndOffset();
  if (!aligned || strides[0] != 1)
    return 1;
  constexpr int64_t widest = 16;
  return std::max<int64_t>(
      1, std::min<int64_t>(aligned.getAlignment(), widest) / kIdBytes);
}

SmallVector<Value> Source::getIds(Value first, int64_t count) {
  SmallVector<Value> ids;
  int64_t width = std::gcd(count, getIdsPerAccess());
  if (width == 1) {
    for (int64_t i = 0; i < count; ++i)
      ids.push_back(memref::LoadOp::create(b.builder, b.loc, copy.getRowIds(),
                                           b.add(first, b.index(i))));
    return ids;
  }
  auto type = VectorType::get(width, b.builder.getI32Type());
  for (int64_t i = 0; i < count; i += width) {
    Value loaded = vector::LoadOp::create(
        b.builder, b.loc, type, copy.getRowIds(), b.add(first, b.index(i)),
        /*nontemporal=*/false, llvm::Align(width * kIdBytes));
    for (int64_t lane = 0; lane < width; ++lane)
      ids.push_back(vector::ExtractOp::create(b.builder, b.loc, loaded, lane));
  }
  return ids;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value Source::getExtent(Extent extent) {
  return b.builder.createOrFold<ExtentOp>(b.loc, b.builder.getIndexType(),
                                          extent, getCache());
}

Value Source::isRow(Value id) {
  // In a continuous cache the rows of all blocks are one page. Without blocks
  // their number is negative.
  Value rows =
      getCache().getType().isPaged()
          ? b.mul(getExtent(Extent::Pages), getExtent(Extent::PageSize))
          : b.max(NumKVRowsOp::create(b.builder, b.loc,
                                      b.builder.getIndexType(), getCache()),
                  b.index(0));
  // A negative id is at least 2^31 without its sign.
  Value limit = b.toI32(b.min(rows, b.index(int64_t(1) << 31)));
  return b.below(id, limit);
}

SourceRow Source::getGathered(Value id) {
  Value isValid = isRow(id);
  Value row = arith::SelectOp::create(b.builder, b.loc, isValid, id, b.i32(0));
  if (!getCache().getType().isPaged())
    return {isValid, b.index(0), b.fromI32(row), b.index(0)};
  Value pageSize = b.toI32(getExtent(Extent::PageSize));
  return {isValid, b.index(0), b.fromI32(b.rem(row, pageSize)),
          b.fromI32(b.div(row, pageSize))};
}

SourceRow Source::getRow(Value row) {
  return getRows(row, /*count=*/1, /*distance=*/1).front();
}

SmallVector<SourceRow> Source::getRows(Value first, int64_t count,
                                       int64_t distance) {
  SmallVector<SourceRow> rows;
  if (copy.getRowIds()) {
    SmallVector<Value> ids;
    if (distance == 1)
      ids = getIds(first, count);
    else
      for (int64_t i = 0; i < count; ++i)
        ids.append(getIds(b.add(first, b.index(i * distance)), 1));
    for (Value id : ids)
      rows.push_back(getGathered(id));
    return rows;
  }
  for (int64_t i = 0; i < count; ++i) {
    Value row = b.add(first, b.index(i * distance));
    Value isValid = copy.getValid() ? b.less(row, copy.getValid()) : Value();
    rows.push_back({isValid, copy.getAccessedBatch(),
                    b.add(copy.getAccessedToken(), row), Value()});
  }
  return rows;
}

Value Source::getSafePage(const SourceRow &row) {
  if (row.page || !row.isValid)
    return row.page;
  return b.selectIf(
      row.isValid,
      [&]() -> Value {
        return PageIdOp::create(b.builder, b.loc, b.builder.getIndexType(),
                                getCache(), row.batch, row.token);
      },
      [&] { return b.index(0); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Source::getElementAt(Value column) {
  int64_t lanes = getCache().getType().getLanesPerStored();
  return b.add(copy.getAccessedElement(), b.mul(column, b.index(lanes)));
}

Value Source::getMemory(const SourceRow &row, Value column, int64_t columns,
                        Value page) {
  CacheTypeInterface cache = getCache().getType();
  auto layout =
      StridedLayoutAttr::get(b.builder.getContext(), ShapedType::kDynamic,
                             {cache.getTokenStride(), 1});
  auto type = MemRefType::get({1, columns}, cache.getStorageType(), layout);
  return BlockTileOp::create(b.builder, b.loc, type, getCache(), row.batch,
                             getHead(), row.token, getElementAt(column), page);
}
