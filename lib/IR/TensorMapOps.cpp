//===- TensorMapOps.cpp - Descriptors of caches ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/TensorMapOps.h"
#include "Accesses.h"
#include "kvcache/IR/CacheShape.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Common to all descriptors of views
//===----------------------------------------------------------------------===//

/// Infers the type of a descriptor, and checks the hardware limits (C1).
static LogicalResult inferDescriptor(StringRef name,
                                     std::optional<Location> loc,
                                     const tma::OpenTensorMap &map,
                                     Type elementType, int64_t l2Promotion,
                                     SmallVectorImpl<Type> &types) {
  if (std::optional<std::string> broken = tma::findBrokenLimit(map))
    return emitOptionalError(loc, "'", name, "' op ", *broken);
  types.push_back(TMATileType::get(
      elementType.getContext(), ArrayRef(map.box).take_front(map.rank),
      elementType, static_cast<Swizzle>(map.swizzle), l2Promotion));
  return success();
}

/// Checks that the page size is static, because the shape of the descriptor
/// depends on it.
static LogicalResult checkPageSize(StringRef name, std::optional<Location> loc,
                                   CacheTypeInterface cache) {
  if (!cache.isPaged() || cache.hasStaticPageSize())
    return success();
  return emitOptionalError(
      loc, "'", name, "' op expects 'cache' to have a static page_size, got ",
      cache);
}

/// Defines the interface methods of an op with the functions `getMap` and
/// `getElementType` of its adaptor.
#define KVCACHE_DEFINE_TENSOR_MAP(OpTy, usesPageSize)                          \
  TypedValue<CacheTypeInterface> OpTy::getViewed() {                           \
    return asCache(getCache());                                                \
  }                                                                            \
  tma::OpenTensorMap OpTy::getTensorMap() { return getMap(Adaptor(*this)); }   \
  LogicalResult OpTy::inferReturnTypes(                                        \
      MLIRContext *, std::optional<Location> loc, Adaptor adaptor,             \
      SmallVectorImpl<Type> &types) {                                          \
    if (usesPageSize &&                                                        \
        failed(checkPageSize(getOperationName(), loc,                          \
                             asCache(adaptor.getCache()).getType())))          \
      return failure();                                                        \
    return inferDescriptor(getOperationName(), loc, getMap(adaptor),           \
                           getElementType(adaptor), adaptor.getL2Promotion(),  \
                           types);                                             \
  }

template <typename T> using DtypeOf = decltype(std::declval<T &>().getDtype());

/// The element type of a descriptor: that of the cache, unless it counts
/// elements of another type.
template <typename AdaptorTy> static Type getElementType(AdaptorTy adaptor) {
  Type stored = asCache(adaptor.getCache()).getType().getStorageType();
  if constexpr (llvm::is_detected<DtypeOf, AdaptorTy>::value)
    return adaptor.getDtype().value_or(stored);
  return stored;
}

/// The bytes of an element of a descriptor; 0 if its type is invalid.
static int64_t getElementBytes(Type type) {
  unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  return bits >= 8 && bits <= 64 && llvm::isPowerOf2_32(bits) ? bits / 8 : 0;
}

/// The view in elements of its descriptor, of a type that the verifier checks.
template <typename AdaptorTy>
static tma::CacheShape getShapeOfElements(AdaptorTy adaptor) {
  tma::CacheShape shape = getShape(asCache(adaptor.getCache()).getType());
  int64_t bytes = getElementBytes(getElementType(adaptor));
  return bytes && shape.isMultipleOf(bytes) ? shape.countIn(bytes) : shape;
}

/// Checks that a descriptor can count elements of its type.
template <typename OpTy> static LogicalResult verifyElementType(OpTy op) {
  Type type = getElementType(typename OpTy::Adaptor(op));
  if (getElementBytes(type))
    return success();
  return op.emitOpError("expects 'dtype' to be an integer or float of 1, 2, "
                        "4 or 8 bytes, got ")
         << type;
}

/// Checks that the view consists of elements of the descriptor.
template <typename OpTy> static LogicalResult verifyElements(OpTy op) {
  if (!op.getDtype())
    return success();
  if (failed(verifyElementType(op)))
    return failure();
  int64_t bytes = getElementBytes(*op.getDtype());
  if (getShape(op.getViewed().getType()).isMultipleOf(bytes))
    return success();
  return op.emitOpError("expects heads and rows of 'cache' to have a multiple "
                        "of the bytes of 'dtype' (")
         << bytes << "), got " << op.getCache().getType();
}

/// Checks that the view is not a view of scales.
static LogicalResult verifyNoScales(Operation *op, CacheTypeInterface cache) {
  if (!isa<ScalesType>(cache))
    return success();
  return op->emitOpError("expects 'cache' not to be a view of scales, which "
                         "needs 'kvcache.create_scale_tma_tile'");
}

/// Checks that a tile of `columns` is at most as wide as `elements`, which
/// `what` names, rounded up to whole spans.
static LogicalResult verifyColumns(Operation *op, const tma::CacheShape &shape,
                                   int64_t columns, Swizzle swizzle,
                                   StringRef what, int64_t elements) {
  int64_t limit =
      tma::getPaddedDepth(shape.elementBytes, toTMA(swizzle), elements);
  if (columns <= limit)
    return success();
  return op->emitOpError("expects 'columns' to be at most ")
         << what << " (" << limit << "), got " << columns;
}

/// Checks that a tile of `columns` is at most as wide as a head.
template <typename OpTy> static LogicalResult verifyColumnsOfHead(OpTy op) {
  tma::CacheShape shape = getShapeOfElements(typename OpTy::Adaptor(op));
  return verifyColumns(op, shape, op.getColumns(), op.getSwizzle(), "a head",
                       shape.headSize);
}

/// Checks (C3) of the ops on rope.
static LogicalResult verifyRope(Operation *op, CacheTypeInterface cache,
                                int64_t paddedDepth, int64_t columns) {
  int64_t bits = cache.getElementType().getIntOrFloatBitWidth();
  if (bits != 8 || cache.getNumHeads() != 1)
    return op->emitOpError("expects 'cache' to have one head of one-byte "
                           "elements, got ")
           << cache;
  if (cache.getLayout())
    return op->emitOpError("expects 'cache' to have packed rows, got ")
           << cache;
  // The sum of the attributes may overflow.
  int64_t rope = cache.getHeadSize() - paddedDepth;
  if (rope % 2 != 0 || rope / 2 != columns)
    return op->emitOpError("expects padded_depth + 2 bytes of rope for each "
                           "column to be head_size (")
           << cache.getHeadSize() << "), got " << paddedDepth << " + 2 * "
           << columns;
  return success();
}

/// Checks that `tile_height` is a multiple of 4.
static LogicalResult verifyTileHeight(Operation *op, int64_t height) {
  if (height % 4 == 0)
    return success();
  return op->emitOpError("expects 'tile_height' to be a multiple of 4, got ")
         << height;
}

//===----------------------------------------------------------------------===//
// CreateTMATileOp
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getMap(CreateTMATileOp::Adaptor op) {
  CacheTypeInterface cache = asCache(op.getCache()).getType();
  tma::Swizzle swizzle = toTMA(op.getSwizzle());
  tma::CacheShape shape = getShapeOfElements(op);
  if (cache.isPaged())
    return tma::getTile(shape, op.getRows(), op.getColumns(), swizzle);
  return tma::getMatrixTile(shape, op.getRows(), op.getColumns(),
                            static_cast<tma::Major>(op.getMajor()), swizzle);
}

KVCACHE_DEFINE_TENSOR_MAP(CreateTMATileOp, /*usesPageSize=*/true)

LogicalResult CreateTMATileOp::verify() {
  CacheTypeInterface cache = getViewed().getType();
  if (failed(verifyNoScales(*this, cache))) // (C2)
    return failure();
  // (C3)
  bool isMN = getMajor() == Major::MN;
  if (cache.isPaged() && isMN)
    return emitOpError("expects 'mn_major' only for a continuous cache");
  if (isMN && getColumns() == 0)
    return emitOpError("expects 'columns' with 'mn_major'");
  if (failed(verifyElements(*this))) // (C7)
    return failure();
  // (C6)
  if (cache.isPaged())
    return verifyColumnsOfHead(*this);
  tma::CacheShape shape = getShapeOfElements(Adaptor(*this));
  return verifyColumns(*this, shape, getColumns(), getSwizzle(), "a row",
                       shape.getRowElements());
}

//===----------------------------------------------------------------------===//
// CreatePagedTMATileOp
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getMap(CreatePagedTMATileOp::Adaptor op) {
  return tma::getPagedTile(getShapeOfElements(op), op.getRows(),
                           op.getColumns(), toTMA(op.getSwizzle()));
}

KVCACHE_DEFINE_TENSOR_MAP(CreatePagedTMATileOp, /*usesPageSize=*/true)

LogicalResult CreatePagedTMATileOp::verify() {
  CacheTypeInterface cache = getViewed().getType();
  // (C2)
  if (failed(verifyNoScales(*this, cache)))
    return failure();
  if (!cache.isPaged())
    return emitOpError("expects 'cache' to be a view of a paged cache, got ")
           << cache;
  // (C3)
  if (cache.getPageSize() % getRows() != 0)
    return emitOpError("expects 'rows' to divide page_size (")
           << cache.getPageSize() << "), got " << getRows();
  if (failed(verifyElements(*this))) // (C6)
    return failure();
  return verifyColumnsOfHead(*this); // (C5)
}

//===----------------------------------------------------------------------===//
// CreateRaggedTMATileOp
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getMap(CreateRaggedTMATileOp::Adaptor op) {
  return tma::getRaggedTile(getShapeOfElements(op), op.getRows(),
                            op.getColumns(), toTMA(op.getSwizzle()));
}

KVCACHE_DEFINE_TENSOR_MAP(CreateRaggedTMATileOp, /*usesPageSize=*/false)

LogicalResult CreateRaggedTMATileOp::verify() {
  if (failed(verifyNoScales(*this, getViewed().getType())) || // (C2)
      failed(verifyElements(*this)))                          // (C5)
    return failure();
  return verifyColumnsOfHead(*this); // (C3)
}

//===----------------------------------------------------------------------===//
// CreateRopeTMATileOp
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getMap(CreateRopeTMATileOp::Adaptor op) {
  return tma::getRopeTile(getShape(asCache(op.getCache()).getType()),
                          op.getRows(), op.getColumns(), op.getPaddedDepth(),
                          toTMA(op.getSwizzle()));
}

/// Rope is always bf16.
static Type getElementType(CreateRopeTMATileOp::Adaptor op) {
  return BFloat16Type::get(op.getCache().getContext());
}

KVCACHE_DEFINE_TENSOR_MAP(CreateRopeTMATileOp, /*usesPageSize=*/true)

LogicalResult CreateRopeTMATileOp::verify() {
  CacheTypeInterface cache = getViewed().getType();
  if (failed(verifyNoScales(*this, cache))) // (C2)
    return failure();
  return verifyRope(*this, cache, getPaddedDepth(), getColumns()); // (C3)
}

//===----------------------------------------------------------------------===//
// CreateGather4TMATileOp
//===----------------------------------------------------------------------===//

/// The bytes from a row of the cache to the next.
static int64_t getRowPitchBytes(CacheTypeInterface cache) {
  tma::CacheShape shape = getShape(cache);
  return shape.getRowPitch() * shape.elementBytes;
}

/// The distance between the rows of the descriptor, in its elements.
static int64_t getRowStride(CreateGather4TMATileOp::Adaptor op, int64_t bytes) {
  if (std::optional<uint64_t> stride = op.getTileStride())
    return *stride;
  CacheTypeInterface cache = asCache(op.getCache()).getType();
  bool hasLayout = !getShape(cache).isPacked() && bytes;
  return hasLayout ? getRowPitchBytes(cache) / bytes : op.getTileWidth();
}

static tma::OpenTensorMap getMap(CreateGather4TMATileOp::Adaptor op) {
  CacheTypeInterface cache = asCache(op.getCache()).getType();
  int64_t bytes = getElementBytes(getElementType(op));
  return tma::getGather4Tile(
      getShape(cache), bytes, op.getTileWidth(), getRowStride(op, bytes),
      // A span has no size in invalid elements.
      bytes ? toTMA(op.getSwizzle()) : tma::Swizzle::None);
}

KVCACHE_DEFINE_TENSOR_MAP(CreateGather4TMATileOp, /*usesPageSize=*/false)

/// Checks (C3) and (C4): the rows of a view without a layout.
static LogicalResult verifyPackedRows(CreateGather4TMATileOp op, int64_t bytes,
                                      int64_t stride) {
  if (stride < int64_t(op.getTileWidth()))
    return op.emitOpError("expects 'tile_stride' to be at least 'tile_width' (")
           << op.getTileWidth() << "), got " << stride;
  int64_t row = getRowPitchBytes(op.getViewed().getType());
  if (stride <= row / bytes)
    return success();
  return op.emitOpError("expects 'tile_stride', by default 'tile_width', to be "
                        "at most a row of the cache (")
         << row << " bytes), got " << stride << " elements of " << bytes
         << " bytes";
}

/// Checks (C6): the rows of a view with a layout.
static LogicalResult verifyRowsOfLayout(CreateGather4TMATileOp op,
                                        int64_t bytes, int64_t stride) {
  CacheTypeInterface cache = op.getViewed().getType();
  int64_t pitch = getRowPitchBytes(cache);
  if (pitch % bytes != 0 || stride != pitch / bytes)
    return op.emitOpError("expects 'tile_stride' to be the token stride of the "
                          "cache (")
           << pitch << " bytes), got " << stride << " elements of " << bytes
           << " bytes";
  if (cache.hasOpenHeadStride())
    return op.emitOpError("expects 'cache' to have a static head stride, got ")
           << cache;
  tma::CacheShape shape = getShape(cache);
  int64_t rowBytes = shape.getRowElements() * shape.elementBytes;
  if (rowBytes % bytes != 0)
    return op.emitOpError("expects a row of the cache to have a multiple of ")
           << bytes << " bytes, got " << rowBytes;
  if (int64_t(op.getTileWidth()) > rowBytes / bytes)
    return op.emitOpError("expects 'tile_width' to be at most a row of the "
                          "cache (")
           << rowBytes / bytes << " elements), got " << op.getTileWidth();
  return success();
}

LogicalResult CreateGather4TMATileOp::verify() {
  CacheTypeInterface cache = getViewed().getType();
  if (failed(verifyNoScales(*this, cache)) ||             // (C2)
      failed(verifyTileHeight(*this, getTileHeight())) || // (C3)
      failed(verifyElementType(*this)))                   // (C1)
    return failure();
  int64_t bytes = getElementBytes(getElementType(Adaptor(*this)));
  int64_t stride = getRowStride(Adaptor(*this), bytes);
  return getShape(cache).isPacked() ? verifyPackedRows(*this, bytes, stride)
                                    : verifyRowsOfLayout(*this, bytes, stride);
}

//===----------------------------------------------------------------------===//
// CreateRopeGather4TMATileOp
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getMap(CreateRopeGather4TMATileOp::Adaptor op) {
  return tma::getRopeGather4Tile(getShape(asCache(op.getCache()).getType()),
                                 op.getTileWidth(), op.getPaddedDepth(),
                                 toTMA(op.getSwizzle()));
}

static Type getElementType(CreateRopeGather4TMATileOp::Adaptor op) {
  return BFloat16Type::get(op.getCache().getContext());
}

KVCACHE_DEFINE_TENSOR_MAP(CreateRopeGather4TMATileOp, /*usesPageSize=*/false)

LogicalResult CreateRopeGather4TMATileOp::verify() {
  CacheTypeInterface cache = getViewed().getType();
  // (C2) to (C4)
  if (failed(verifyNoScales(*this, cache)) ||
      failed(verifyRope(*this, cache, getPaddedDepth(), getTileWidth())))
    return failure();
  return verifyTileHeight(*this, getTileHeight());
}

//===----------------------------------------------------------------------===//
// CreateScaleTMATileOp
//===----------------------------------------------------------------------===//

static tma::OpenTensorMap getMap(CreateScaleTMATileOp::Adaptor op) {
  return tma::getScaleTile(getShape(asCache(op.getCache()).getType()),
                           op.getRows());
}

KVCACHE_DEFINE_TENSOR_MAP(CreateScaleTMATileOp, /*usesPageSize=*/true)

LogicalResult CreateScaleTMATileOp::verify() {
  auto scales = dyn_cast<ScalesType>(getCache().getType());
  if (!scales) // (C2)
    return emitOpError("expects 'cache' to be a view of scales, got ")
           << getCache().getType();
  CacheTypeInterface type = scales;
  if (!type.hasRowsOfTokens())
    return emitOpError("expects scales that are neither interleaved nor shared "
                       "by tokens, got ")
           << scales;
  int64_t perToken = type.getNumHeads() * type.getStoredHeadSize();
  if (perToken != 1) // (C3)
    return emitOpError("expects a token to have one scale, got ") << perToken;
  if (type.getTokenStride() != 1)
    return emitOpError("expects the scales of tokens to follow each other, got "
                       "a token stride of ")
           << type.getTokenStride();
  return success();
}

#undef KVCACHE_DEFINE_TENSOR_MAP

//===----------------------------------------------------------------------===//
// EncodeTensorMapOp
//===----------------------------------------------------------------------===//

LogicalResult EncodeTensorMapOp::verify() {
  // (C1)
  size_t rank = getDescriptor().getType().getBox().size();
  if (getSizes().size() != rank)
    return emitOpError("expects a size for each side of the box (")
           << rank << "), got " << getSizes().size();
  if (getStrides().size() != rank - 1)
    return emitOpError("expects a stride for each side of the box but the "
                       "first (")
           << rank - 1 << "), got " << getStrides().size();
  return success();
}
