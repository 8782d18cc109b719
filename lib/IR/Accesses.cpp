//===- Accesses.cpp - Common parts of ops that address a cache ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/CacheShape.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult kvcache::verifyWidth(Operation *op, StringRef name, Type type,
                                   CacheTypeInterface cache) {
  int64_t lanes = getNumLanes(type);
  if (lanes > cache.getLanesPerHead()) {
    bool ofScales = isa<ScalesType>(cache);
    return op->emitOpError("expects '")
           << name << "' to have at most "
           << (ofScales ? "one lane per group of a head (" : "head_size (")
           << cache.getLanesPerHead()
           << (ofScales ? "), got " : ") lanes, got ") << lanes;
  }
  if (lanes % cache.getLanesPerStored() != 0)
    return op->emitOpError("expects '")
           << name << "' to have an even number of lanes of "
           << cache.getElementType() << ", got " << lanes;
  return success();
}

LogicalResult kvcache::verifyTile(Operation *op, MemRefType tile,
                                  CacheTypeInterface cache) {
  // (C1)
  auto layout = StridedLayoutAttr::get(op->getContext(), ShapedType::kDynamic,
                                       {cache.getTokenStride(), 1});
  if (!tile.hasStaticShape() || tile.getMemorySpace() ||
      tile.getElementType() != cache.getStorageType() ||
      tile.getLayout() != layout)
    return op->emitOpError("expects 'tile' to be a memref with static sizes, "
                           "element type ")
           << cache.getStorageType() << " and layout " << layout << ", got "
           << tile;
  int64_t tokens = tile.getDimSize(0);
  if (tokens == 0 || tile.getDimSize(1) == 0)
    return op->emitOpError("expects 'tile' to have at least one token and one "
                           "column, got ")
           << tile;
  // (C2)
  if (tile.getDimSize(1) > cache.getStoredHeadSize())
    return op->emitOpError("expects 'tile' to have at most ")
           << cache.getStoredHeadSize() << " columns, got "
           << tile.getDimSize(1);
  // (C3); the caller must keep it for a dynamic page size
  if (cache.hasStaticPageSize() && cache.getPageSize() % tokens != 0)
    return op->emitOpError("expects page_size (")
           << cache.getPageSize()
           << ") to be a multiple of the rows of 'tile', got " << tokens;
  return success();
}

LogicalResult kvcache::verifyTensorScale(Operation *op, Value tensorScale,
                                         Type scale) {
  if (!tensorScale || isa_and_present<Float8E4M3FNType>(scale))
    return success();
  InFlightDiagnostic diag =
      op->emitOpError("expects 'tensor_scale' only with scales of type "
                      "f8E4M3FN, got ");
  if (scale)
    return diag << scale;
  return diag << "no scales";
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

ConstantIntRanges kvcache::getRangeUpTo(uint64_t max) {
  unsigned bits = IndexType::kInternalStorageBitWidth;
  return ConstantIntRanges::fromUnsigned(APInt::getZero(bits),
                                         APInt(bits, max));
}

ConstantIntRanges kvcache::getEntryRange() {
  return getRangeUpTo(std::numeric_limits<uint32_t>::max());
}

ConstantIntRanges kvcache::getRowInPageRange(CacheTypeInterface cache) {
  return cache.hasStaticPageSize() ? getRangeUpTo(cache.getPageSize() - 1)
                                   : getEntryRange();
}

ConstantIntRanges kvcache::getRowRange() {
  return getRangeUpTo(std::numeric_limits<int64_t>::max());
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
                                int64_t tokens, bool ofScales) {
  Operation *op = getCollectionOp(cache);
  if (auto continuous = dyn_cast_if_present<ContinuousCollectionOp>(op))
    return isConstantBelow(batch,
                           continuous.getLookupTable().getType().getDimSize(0));
  auto paged = dyn_cast_if_present<PagedCollectionOp>(op);
  if (!paged)
    return false;
  CacheTypeInterface collection = paged.getCollection().getType();
  if (!collection.hasStaticPageSize())
    return false;
  ofScales |= isa<ScalesType>(cache.getType());
  MemRefType table = paged.getLookupTable().getType();
  if (ofScales && paged.getScalesLookupTable())
    table = paged.getScalesLookupTable().getType();
  std::optional<int64_t> first = getConstantIntValue(token);
  if (!first || *first < 0 || table.isDynamicDim(1) ||
      !isConstantBelow(batch, table.getDimSize(0)))
    return false;
  int64_t pageSize = collection.getPageSize();
  // No term overflows, because the tokens lie in fewer than 2^31 pages.
  int64_t lastPage =
      *first / pageSize + (*first % pageSize + tokens - 1) / pageSize;
  return lastPage < table.getDimSize(1);
}
