//===- Accesses.cpp - Common parts of ops that address a cache ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/Formats.h"

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
    bool isScales = isa<ScalesType>(cache);
    return op->emitOpError("expects '")
           << name << "' to have at most "
           << (isScales ? "one lane per group of a head (" : "head_size (")
           << cache.getLanesPerHead()
           << (isScales ? "), got " : ") lanes, got ") << lanes;
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
  if (tile.getDimSize(1) > cache.getStoredLanesPerHead())
    return op->emitOpError("expects 'tile' to have at most ")
           << cache.getStoredLanesPerHead() << " columns, got "
           << tile.getDimSize(1);
  // (C3); the caller must keep it for a dynamic page size
  if (cache.hasStaticPageSize() && cache.getPageSize() % tokens != 0)
    return op->emitOpError("expects page_size (")
           << cache.getPageSize()
           << ") to be a multiple of the rows of 'tile', got " << tokens;
  return success();
}

LogicalResult kvcache::verifyTensorScale(Operation *op, Value tensorScale,
                                         CacheTypeInterface cache) {
  Type element = cache.getElementType();
  bool isNarrow =
      element.getIntOrFloatBitWidth() <= 8 && cache.convertsElements();
  if (tensorScale && cache.hasZeroPoints())
    return op->emitOpError("expects 'tensor_scale' only for a cache without "
                           "zero points, got ")
           << cache;
  if (!tensorScale || (isNarrow && !isa<ScalesType>(cache)))
    return success();
  return op->emitOpError("expects 'tensor_scale' only for a cache with floats "
                         "of at most 8 bits, i8 or scales, got ")
         << cache;
}

LogicalResult kvcache::verifyPowerOfTwo(Operation *op, Type type) {
  if (hasUse(type, FormatUse::Power))
    return success();
  InFlightDiagnostic diag = op->emitOpError("expects scales of ");
  diag << listFormats(FormatUse::Power) << " with 'power_of_two', got ";
  if (type)
    return diag << type;
  return diag << "a cache without scales";
}

LogicalResult kvcache::verifyPowerOfTwo(Operation *op,
                                        CacheTypeInterface cache) {
  if (!cache.hasZeroPoints())
    return verifyPowerOfTwo(op, cache.getScale());
  return op->emitOpError("expects 'power_of_two' only for a cache without zero "
                         "points, got ")
         << cache;
}

LogicalResult kvcache::verifyLeastAmax(Operation *op, bool leastAmax,
                                       bool powerOfTwo) {
  if (!leastAmax || powerOfTwo)
    return success();
  return op->emitOpError("expects 'least_amax' only with 'power_of_two'");
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
  BundleOpInterface bundle = getBundleOp(cache);
  return bundle && isConstantBelow(
                       batch, bundle.getCacheLengths().getType().getDimSize(0));
}

bool kvcache::areEntriesInRange(Value cache, Value batch, Value token,
                                int64_t tokens, bool isScales) {
  BundleOpInterface bundle = getBundleOp(cache);
  if (!bundle)
    return false;
  CacheTypeInterface type = bundle.getBundle().getType();
  MemRefType table = bundle.getLookupTable().getType();
  if (!type.isPaged())
    return isConstantBelow(batch, table.getDimSize(0));
  // Where entries of other tables are is known only at run time.
  if (!type.hasStaticPageSize() || type.getTable() != TableKind::Dense)
    return false;
  isScales |= isa<ScalesType>(cache.getType());
  if (isScales && bundle.getScalesLookupTable())
    table = bundle.getScalesLookupTable().getType();
  std::optional<int64_t> first = getConstantIntValue(token);
  if (!first || *first < 0 || table.isDynamicDim(1) ||
      !isConstantBelow(batch, table.getDimSize(0)))
    return false;
  int64_t pageSize = type.getPageSize();
  // No term overflows, because the tokens lie in fewer than 2^31 pages.
  int64_t lastPage =
      *first / pageSize + (*first % pageSize + tokens - 1) / pageSize;
  return lastPage < table.getDimSize(1);
}
