//===- CacheShape.cpp - Shape and alignment of a cache --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/ScalesOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

// The enums have the same cases, in the order of their spans.
static_assert(static_cast<int>(Swizzle::None) ==
                  static_cast<int>(tma::Swizzle::None) &&
              static_cast<int>(Swizzle::Span32) ==
                  static_cast<int>(tma::Swizzle::Span32) &&
              static_cast<int>(Swizzle::Span64) ==
                  static_cast<int>(tma::Swizzle::Span64) &&
              static_cast<int>(Swizzle::Span128) ==
                  static_cast<int>(tma::Swizzle::Span128));

tma::Swizzle kvcache::toTMA(Swizzle swizzle) {
  return static_cast<tma::Swizzle>(swizzle);
}

tma::CacheShape kvcache::getShape(CacheTypeInterface cache) {
  tma::CacheShape shape;
  shape.elementBytes = cache.getStorageType().getIntOrFloatBitWidth() / 8;
  shape.numHeads = cache.getNumHeads();
  shape.headSize = cache.getStoredHeadSize();
  if (cache.hasStaticPageSize())
    shape.pageSize = cache.getPageSize();
  if (!cache.getLayout())
    return shape;
  shape.tokenStride = cache.getTokenStride();
  shape.roleStride = cache.getLayout().getRoleStride();
  shape.hasOpenHeadStride = cache.hasOpenHeadStride();
  if (!shape.hasOpenHeadStride)
    shape.headStride = cache.getHeadStride();
  return shape;
}

BundleOpInterface kvcache::getBundleOp(Value cache) {
  if (auto view = cache.getDefiningOp<ScalesViewOp>())
    cache = view.getCache();
  if (auto view = cache.getDefiningOp<LayerViewOpInterface>())
    cache = view.getCollection();
  return cache.getDefiningOp<BundleOpInterface>();
}

/// Returns the blocks, or the scales, of a view; null if no op that bundles
/// them is known.
static Value getTensor(Value view, bool isScales) {
  BundleOpInterface bundle = getBundleOp(view);
  if (!bundle)
    return {};
  return isScales ? bundle.getScales() : bundle.getBlocks();
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

/// Returns a divisor of a stride of `tensor`, in elements: the static stride,
/// or for a memref without a layout the product of the static sizes. `nullopt`
/// for a dynamic stride.
static std::optional<int64_t> getStrideDivisor(Value tensor, unsigned dim) {
  auto type = cast<MemRefType>(tensor.getType());
  if (type.getLayout().isIdentity()) {
    int64_t divisor = 1;
    for (int64_t size : type.getShape().drop_front(dim + 1))
      if (!ShapedType::isDynamic(size))
        divisor *= size;
    return divisor;
  }
  int64_t stride = type.getStridesAndOffset().first[dim];
  if (!ShapedType::isDynamic(stride))
    return stride;
  auto cast = tensor.getDefiningOp<memref::CastOp>();
  if (!cast || !isa<MemRefType>(cast.getSource().getType()))
    return std::nullopt;
  return getStrideDivisor(cast.getSource(), dim);
}

CacheTypeInterface kvcache::getViewType(CacheTypeInterface cache,
                                        bool isScales) {
  MLIRContext *context = cache.getContext();
  if (!cache.isPaged())
    return ContinuousCacheType::get(context, cache.getElementType(),
                                    cache.getParams());
  auto view = PagedCacheType::get(
      context, cache.getElementType(), cache.getParams(), cache.getPageSize(),
      cache.getScale(), cache.getGranularity(), cache.getLayout(),
      cache.getScaleLayout(), cache.getTable(), cache.getZeroPoint(),
      cache.getTokenGranularity());
  if (isScales)
    return ScalesType::get(context, view);
  return view;
}

std::optional<int64_t> kvcache::getColumnStride(CacheTypeInterface view) {
  if (view.hasOpenHeadStride())
    return std::nullopt;
  return view.getHeadStride() * view.getLanesPerStored();
}

static uint64_t getStoredBytes(CacheTypeInterface view) {
  return view.getStorageType().getIntOrFloatBitWidth() / 8;
}

uint64_t kvcache::getInPageAlignment(CacheTypeInterface view, uint64_t limit) {
  uint64_t bytes = getStoredBytes(view);
  LayoutAttrInterface layout = view.getLayout();
  if (!layout)
    return llvm::MinAlign(limit, view.getTokenStride() * bytes);
  uint64_t open = isa<ScalesType>(view) ? bytes : kPromisedAlignment;
  uint64_t alignment =
      getRowAlignment(layout, view.getStoredHeadSize(), bytes, open, limit);
  return llvm::MinAlign(alignment, layout.getRoleStride() * bytes);
}

int64_t kvcache::getDistanceUnit(CacheTypeInterface view) {
  return std::max<int64_t>(
      getInPageAlignment(view, kPromisedAlignment) / getStoredBytes(view), 1);
}

uint64_t kvcache::getPageAlignment(Value view, bool isScales,
                                   uint64_t tensorAlignment) {
  Value tensor = getTensor(view, isScales);
  if (!tensor)
    return kPromisedAlignment;
  auto type = cast<MemRefType>(tensor.getType());
  uint64_t bytes = type.getElementTypeBitWidth() / 8;
  uint64_t alignment = tensorAlignment;
  auto limit = [&](std::optional<int64_t> elements) {
    alignment = llvm::MinAlign(alignment, elements ? *elements * bytes
                                                   : kPromisedAlignment);
  };
  int64_t offset = type.getStridesAndOffset().second;
  limit(ShapedType::isDynamic(offset) ? std::nullopt : std::optional(offset));
  // Pages, and of a collection roles and layers.
  for (unsigned dim = 0; dim < getTokensDim(type); ++dim)
    if (type.getDimSize(dim) != 1)
      limit(getStrideDivisor(tensor, dim));
  return alignment;
}

std::optional<bool> kvcache::arePagesWholeRowsApart(Value view) {
  Value tensor = getTensor(view, isa<ScalesType>(view.getType()));
  if (!tensor)
    return std::nullopt;
  if (cast<MemRefType>(tensor.getType()).getDimSize(0) == 1)
    return true;
  std::optional<int64_t> distance = getStrideDivisor(tensor, /*dim=*/0);
  if (!distance)
    return std::nullopt;
  auto cache = cast<CacheTypeInterface>(view.getType());
  return *distance % cache.getTokenStride() == 0;
}

void kvcache::createRowDistanceCheck(OpBuilder &builder, Operation *op,
                                     Value distance, Value pages, int64_t row) {
  Location loc = op->getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value rest = arith::RemUIOp::create(builder, loc, distance, index(row));
  Value one = index(1);
  Value isOnePage = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ule, pages, one);
  Value excess =
      arith::SelectOp::create(builder, loc, isOnePage, index(0), rest);
  CheckOp::create(builder, loc, excess, one,
                  ("'" + op->getName().getStringRef() +
                   "' op distance between pages modulo a row (" + Twine(row) +
                   " elements), which must be 0 where rows are counted,")
                      .str());
}

LogicalResult kvcache::checkConstantElement(AccessOpInterface op) {
  Value element = op.getAccessedElement();
  std::optional<int64_t> constant =
      element ? getConstantIntValue(element) : std::nullopt;
  if (!constant)
    return success();
  CacheTypeInterface type = op.getAccessedCache().getType();
  int64_t perLane = type.getElementsPerLane();
  // Of scales alone it is their group that counts, as in a view of them.
  if (!op.accessesElements() && !isa<ScalesType>(type))
    perLane = type.getGranularity();
  int64_t width = op.getAccessedWidth();
  if (*constant / perLane % width == 0)
    return success();
  return op.emitOpError("expects ")
         << (perLane == 1 ? "element " : "the group of element ") << *constant
         << " to be a multiple of the access's width (" << width << ")";
}

LogicalResult kvcache::checkConstantToken(StoreQuantizedOp op) {
  std::optional<int64_t> token = getConstantIntValue(op.getToken());
  int64_t tokens = op.getAccessedTokens();
  if (!token || *token % tokens == 0)
    return success();
  return op.emitOpError("expects token ")
         << *token << " to be a multiple of token_granularity (" << tokens
         << "), because scales are those of whole groups";
}
