//===- TypeVerifiers.cpp - Rules of attributes and types ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "kvcache/IR/FragmentLayout.h"
#include "kvcache/IR/MatrixOps.h"

using namespace mlir;
using namespace mlir::kvcache;

using EmitError = function_ref<InFlightDiagnostic()>;

/// The exclusive limit of elements in a page of packed rows, so that offsets
/// inside a page fit into 32 bits.
static constexpr int64_t kMaxElements = int64_t(1) << 31;

LogicalResult ParamsAttr::verify(EmitError emitError, int64_t numHeads,
                                 int64_t headSize, bool isMLA) {
  // (C1)
  if (numHeads <= 0)
    return emitError() << "expects num_heads to be positive, got " << numHeads;
  if (headSize <= 0)
    return emitError() << "expects head_size to be positive, got " << headSize;
  if (numHeads >= kMaxElements || headSize >= kMaxElements ||
      numHeads * headSize >= kMaxElements)
    return emitError() << "expects a row of num_heads * head_size elements to "
                          "have fewer than 2^31, got "
                       << numHeads << " * " << headSize;
  return success();
}

static int64_t getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

/// Checks (C4) of paged collections and views.
static LogicalResult verifyScale(EmitError emitError, Type elementType,
                                 Type scale, int64_t granularity) {
  if (!hasUse(scale, FormatUse::Scale))
    return emitError() << "expects a scale type of "
                       << listFormats(FormatUse::Scale) << ", got " << scale;
  if (!hasUse(elementType, FormatUse::Scaled))
    return emitError() << "expects quantized elements of "
                       << listFormats(FormatUse::Scaled) << ", got "
                       << elementType;
  bool isNVFP4 = granularity == 16 && isa<Float8E4M3FNType>(scale);
  bool isMX = granularity == 32 && isa<Float8E8M0FNUType>(scale);
  if (isa<Float4E2M1FNType>(elementType) && !isNVFP4 && !isMX)
    return emitError() << "expects f4E2M1FN with granularity 16 and scales of "
                          "f8E4M3FN (NVFP4), or 32 and f8E8M0FNU (MX), got "
                       << granularity << " and " << scale;
  return success();
}

/// Checks (C11) of paged collections and views.
static LogicalResult verifyZeroPoint(EmitError emitError, Type elementType,
                                     Type scale, Type zeroPoint) {
  bool needsZeroPoint = hasUse(elementType, FormatUse::ZeroPoint);
  if (!zeroPoint && needsZeroPoint)
    return emitError() << "expects zero_point for elements of type "
                       << listFormats(FormatUse::ZeroPoint);
  if (!zeroPoint)
    return success();
  if (!needsZeroPoint)
    return emitError() << "expects zero_point only for elements of type "
                       << listFormats(FormatUse::ZeroPoint) << ", got "
                       << elementType;
  if (zeroPoint != scale)
    return emitError() << "expects zero_point to be the scale type (" << scale
                       << "), got " << zeroPoint;
  if (scale.getIntOrFloatBitWidth() < 16)
    return emitError() << "expects f32, f16 or bf16 for scale and zero_point, "
                          "got "
                       << scale;
  return success();
}

/// Checks (C12) of paged collections and views.
static LogicalResult verifyTokenGranularity(EmitError emitError,
                                            int64_t tokenGranularity,
                                            int64_t pageSize, Type scale,
                                            int64_t granularity) {
  if (tokenGranularity == 1)
    return success();
  if (tokenGranularity <= 0)
    return emitError() << "expects token_granularity to be positive, got "
                       << tokenGranularity;
  if (!scale)
    return emitError() << "expects token_granularity only with a scale type";
  if (granularity != 1)
    return emitError() << "expects granularity to be 1 with "
                          "token_granularity, got "
                       << granularity;
  if (ShapedType::isDynamic(pageSize))
    return emitError()
           << "expects a number for page_size with token_granularity";
  if (pageSize % tokenGranularity != 0)
    return emitError() << "expects token_granularity to divide page_size ("
                       << pageSize << "), got " << tokenGranularity;
  return success();
}

/// Checks (C2) to (C5) and (C11) of paged collections and views.
static LogicalResult verifyQuantization(EmitError emitError, Type elementType,
                                        ParamsAttr params, Type scale,
                                        int64_t granularity, Type zeroPoint) {
  constexpr auto any = FormatUse::Element | FormatUse::Scaled;
  if (!hasUse(elementType, any))
    return emitError() << "expects an element type of " << listFormats(any)
                       << ", got " << elementType; // (C2)
  if (!scale && granularity != 0)
    return emitError() << "expects granularity only with a scale type"; // (C3)
  if (!scale && !hasUse(elementType, FormatUse::Element))
    return emitError() << "expects a scale type for elements of type "
                       << elementType; // (C2)
  if (!scale && zeroPoint)             // (C11)
    return emitError() << "expects zero_point only with a scale type";
  if (!scale)
    return success();
  if (granularity == 0)
    return emitError() << "expects granularity with a scale type"; // (C3)
  if (granularity < 0)
    return emitError() << "expects granularity to be positive, got "
                       << granularity; // (C3)
  if (failed(verifyScale(emitError, elementType, scale, granularity)) ||
      failed(verifyZeroPoint(emitError, elementType, scale, zeroPoint)))
    return failure();
  if (isPackedInPairs(elementType) && params.getHeadSize() % 2 != 0) // (C5)
    return emitError() << "expects an even head_size for " << elementType
                       << ", got " << params.getHeadSize();
  return success();
}

static LogicalResult verifyPaged(EmitError emitError, Type elementType,
                                 ParamsAttr params, int64_t pageSize,
                                 Type scale, int64_t granularity,
                                 LayoutAttrInterface layout,
                                 LayoutAttrInterface scaleLayout,
                                 Type zeroPoint, int64_t tokenGranularity) {
  // (C1)
  bool isStatic = !ShapedType::isDynamic(pageSize);
  if (isStatic && pageSize <= 0)
    return emitError() << "expects page_size to be positive, got " << pageSize;
  int64_t row = params.getNumHeads() * params.getHeadSize();
  if (isStatic && (pageSize >= kMaxElements || pageSize * row >= kMaxElements))
    return emitError() << "expects a page of page_size * num_heads * head_size "
                          "elements to have fewer than 2^31, got "
                       << pageSize << " * " << row;
  if (failed(verifyQuantization(emitError, elementType, params, scale,
                                granularity, zeroPoint)) ||
      failed(verifyTokenGranularity(emitError, tokenGranularity, pageSize,
                                    scale, granularity)))
    return failure();
  // (C6) to (C8)
  PageShape shape = getPageShape(elementType, params, pageSize);
  if (failed(verifyLayout(emitError, "layout", layout, shape)))
    return failure();
  // (C13)
  bool isMLA = params.getIsMla();
  if (failed(verifyRoleStride(emitError, "layout", layout, shape,
                              getBytes(getStorageType(elementType)), isMLA)))
    return failure();
  // (C9)
  if (scaleLayout && !scale)
    return emitError() << "expects scale_layout only with scale and "
                          "granularity";
  if (scale)
    shape = getScalesShape(params, pageSize, granularity, zeroPoint,
                           tokenGranularity);
  // (C10)
  bool isShared = zeroPoint || tokenGranularity != 1;
  if (scaleLayout && scaleLayout.getInterleave() != 1 && isShared)
    return emitError() << "expects 'interleave' only without zero_point and "
                          "token_granularity";
  if (failed(verifyInterleave(emitError, layout, scaleLayout, shape)) ||
      failed(verifyLayout(emitError, "scale_layout", scaleLayout, shape)))
    return failure();
  // (C13)
  return scaleLayout ? verifyRoleStride(emitError, "scale_layout", scaleLayout,
                                        shape, getBytes(scale), isMLA)
                     : success();
}

static LogicalResult verifyContinuous(EmitError emitError, Type elementType) {
  // (C1)
  if (!hasUse(elementType, FormatUse::Element))
    return emitError() << "expects an element type of "
                       << listFormats(FormatUse::Element) << ", got "
                       << elementType;
  return success();
}

LogicalResult PagedCollectionType::verify(EmitError emitError, Type elementType,
                                          ParamsAttr params, int64_t pageSize,
                                          Type scale, int64_t granularity,
                                          LayoutAttrInterface layout,
                                          LayoutAttrInterface scaleLayout,
                                          TableKind, Type zeroPoint,
                                          int64_t tokenGranularity) {
  return verifyPaged(emitError, elementType, params, pageSize, scale,
                     granularity, layout, scaleLayout, zeroPoint,
                     tokenGranularity);
}

LogicalResult PagedCacheType::verify(EmitError emitError, Type elementType,
                                     ParamsAttr params, int64_t pageSize,
                                     Type scale, int64_t granularity,
                                     LayoutAttrInterface layout,
                                     LayoutAttrInterface scaleLayout, TableKind,
                                     Type zeroPoint, int64_t tokenGranularity) {
  return verifyPaged(emitError, elementType, params, pageSize, scale,
                     granularity, layout, scaleLayout, zeroPoint,
                     tokenGranularity);
}

LogicalResult ContinuousCollectionType::verify(EmitError emitError,
                                               Type elementType, ParamsAttr) {
  return verifyContinuous(emitError, elementType);
}

LogicalResult ContinuousCacheType::verify(EmitError emitError, Type elementType,
                                          ParamsAttr) {
  return verifyContinuous(emitError, elementType);
}

LogicalResult ScalesType::verify(EmitError emitError, Type cache) {
  // (C1)
  if (!isa<PagedCacheType, ContinuousCacheType>(cache))
    return emitError() << "expects a view of a paged or continuous cache, got "
                       << cache;
  return success();
}

/// Checks that an element is an integer or a float of whole bytes.
static LogicalResult verifyWholeBytes(EmitError emitError, Type elementType) {
  unsigned bits =
      elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 0;
  if (bits >= 8 && bits <= 64 && llvm::isPowerOf2_32(bits))
    return success();
  return emitError() << "expects an integer or float element type of 1, 2, 4 "
                        "or 8 bytes, got "
                     << elementType;
}

LogicalResult TileType::verify(EmitError emitError, int64_t rows,
                               int64_t columns, Type elementType,
                               Swizzle swizzle) {
  if (failed(verifyWholeBytes(emitError, elementType))) // (C2)
    return failure();
  // (C1)
  if (rows <= 0 || columns <= 0)
    return emitError() << "expects rows and columns to be positive, got "
                       << rows << "x" << columns;
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  if (rows >= kMaxElements || columns >= kMaxElements ||
      columns * bytes >= kMaxElements || rows * columns * bytes >= kMaxElements)
    return emitError() << "expects a tile of fewer than 2^31 bytes, got "
                       << rows << "x" << columns << " of " << elementType;
  // (C3)
  if (columns * bytes % 16 != 0)
    return emitError() << "expects rows of a multiple of 16 bytes, got "
                       << columns * bytes;
  // (C4)
  tma::TileLayout layout{rows, columns, bytes, toTMA(swizzle)};
  if (layout.getNumChunks() > 1 && rows % 8 != 0)
    return emitError() << "expects a multiple of 8 rows for several chunks of "
                       << layout.getChunkColumns() << " columns, got " << rows;
  return success();
}

/// Checks (C3) of an accumulator in tensor memory.
static LogicalResult verifyAccumulator(EmitError emitError, int64_t rows,
                                       int64_t columns, Type elementType) {
  // For 128 rows, the PTX ISA has steps of 8, and CUTLASS of 16.
  int64_t step = rows == TmemTileType::kMemoryLanes
                     ? 16
                     : WgmmaProduct::getColumnStep(elementType, columns);
  if (columns > WgmmaProduct::kMostColumns) // two products
    step *= 2;
  if (columns > 0 && columns <= TmemTileType::kMemoryColumns &&
      columns % step == 0)
    return success();
  return emitError() << "expects a positive multiple of " << step
                     << " columns of " << elementType << ", at most "
                     << TmemTileType::kMemoryColumns << ", got " << columns;
}

LogicalResult TmemTileType::verify(EmitError emitError, int64_t rows,
                                   int64_t columns, Type elementType) {
  if (rows != 64 && rows != kMemoryLanes) // (C1)
    return emitError() << "expects 64 or 128 rows, got " << rows;
  if (elementType.isF32() || elementType.isSignlessInteger(32))
    return verifyAccumulator(emitError, rows, columns, elementType);
  if (!elementType.isBF16() && !elementType.isF16() &&
      !hasUse(elementType, FormatUse::FP8) &&
      !elementType.isSignlessInteger(8)) // (C2)
    return emitError() << "expects f32, i32, bf16, f16, f8E4M3FN, f8E5M2 or i8 "
                          "as element type, got "
                       << elementType;
  // (C4)
  constexpr int64_t step = 32, largest = 2048;
  int64_t size = elementType.getIntOrFloatBitWidth() / 8;
  if (columns > 0 && columns <= largest && columns * size <= largest &&
      columns * size % step == 0)
    return success();
  return emitError() << "expects a row of a multiple of " << step
                     << " bytes, at most " << largest << ", got " << columns
                     << "x" << elementType;
}

LogicalResult PipeType::verify(EmitError emitError, int64_t stages,
                               ArrayRef<Type> tiles, int64_t producers) {
  // (C1)
  constexpr int64_t maxStages = 64, maxProducers = 31;
  if (stages < 1 || stages > maxStages)
    return emitError() << "expects 1 to " << maxStages << " stages, got "
                       << stages;
  if (tiles.empty())
    return emitError() << "expects at least one tile";
  for (Type tile : tiles)
    if (!isa<TileType>(tile))
      return emitError() << "expects a tile type, got " << tile;
  // (C2); 0 represents all threads
  if (producers < 0 || producers > maxProducers)
    return emitError() << "expects producers to be 1 to " << maxProducers
                       << " warps, got " << producers;
  return success();
}

LogicalResult TMATileType::verify(EmitError emitError, ArrayRef<int64_t> box,
                                  Type elementType, Swizzle swizzle,
                                  int64_t l2Promotion) {
  if (failed(verifyWholeBytes(emitError, elementType))) // (C2)
    return failure();
  // (C1)
  if (box.empty() || box.size() > tma::OpenTensorMap::kMaxRank)
    return emitError() << "expects a box of 1 to 5 sides, got " << box.size();
  // (C1), (C3): use valid sizes and strides, which the type does not have.
  tma::OpenTensorMap map;
  map.elementBytes = elementType.getIntOrFloatBitWidth() / 8;
  map.swizzle = toTMA(swizzle);
  for (int64_t side : box)
    map.add(/*dim=*/1, /*stride=*/map.rank == 0 ? 1 : 16, side);
  if (std::optional<std::string> broken = tma::findBrokenLimit(map))
    return emitError() << *broken;
  // (C4); 0 represents none
  if (!llvm::is_contained({0, 64, 128, 256}, l2Promotion))
    return emitError() << "expects l2_promotion to be 64, 128 or 256, got "
                       << l2Promotion;
  return success();
}

int64_t TMATileType::getBytes() const {
  return llvm::product_of(getBox()) * getElementBytes();
}

LogicalResult RowIndicesType::verify(EmitError emitError, int64_t rows,
                                     int64_t pageSize) {
  // (C1); an absent page size is 0
  if (rows <= 0)
    return emitError() << "expects rows to be positive, got " << rows;
  if (ShapedType::isDynamic(pageSize))
    return success();
  if (pageSize < 0)
    return emitError() << "expects page_size to be positive, got " << pageSize;
  if (pageSize != 0 && rows > pageSize && rows % pageSize != 0) // (C2)
    return emitError() << "expects rows to be at most page_size or a multiple "
                          "of it ("
                       << pageSize << "), got " << rows;
  constexpr int64_t maxPages = 1024;
  if (pageSize != 0 && rows / pageSize > maxPages) // (C3)
    return emitError() << "expects rows of at most " << maxPages
                       << " pages, got " << rows / pageSize;
  return success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// (C1)
static LogicalResult verifyFragmentShape(EmitError emitError,
                                         ArrayRef<int64_t> shape,
                                         FragmentLayout layout) {
  if (shape.size() != 1 && shape.size() != 2)
    return emitError() << "expects rows, and at most columns, got "
                       << shape.size() << " sizes";
  const auto &digits = LayoutDigits::get(layout, shape[0]);
  StringRef name = stringifyFragmentLayout(layout);
  SmallVector<int64_t> counts = LayoutDigits::getRowCounts(layout);
  if (digits.repeatsRows) {
    if (shape[0] <= 0 || shape[0] > LayoutDigits::kMostRows ||
        shape[0] % digits.countRows())
      return emitError() << "expects " << name << " to have a multiple of "
                         << digits.countRows() << " rows up to "
                         << LayoutDigits::kMostRows << ", got " << shape[0];
  } else if (!llvm::is_contained(counts, shape[0])) {
    InFlightDiagnostic error = emitError();
    error << "expects " << name << " to have ";
    llvm::interleave(counts, error, " or ");
    return error << " rows, got " << shape[0];
  }
  if (shape.size() == 1)
    return success();
  constexpr int64_t largest = 1024;
  int64_t columns = digits.countColumns();
  if (shape[1] > 0 && shape[1] <= largest && shape[1] % columns == 0)
    return success();
  return emitError() << "expects " << name << " to have a multiple of "
                     << columns << " columns up to " << largest << ", got "
                     << shape[1];
}

LogicalResult FragmentType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                   Type elementType, FragmentLayout layout,
                                   bool partial) {
  if (failed(verifyFragmentShape(emitError, shape, layout))) // (C1)
    return failure();
  // (C2)
  const auto &digits = LayoutDigits::get(layout, shape[0]);
  StringRef name = stringifyFragmentLayout(layout);
  bool isNumber =
      isa<FloatType>(elementType) || elementType.isSignlessInteger();
  constexpr int64_t largest = 32;
  int64_t bits = isNumber ? elementType.getIntOrFloatBitWidth() : 0;
  if (!isNumber || bits > largest)
    return emitError() << "expects floats or signless integers of at most "
                       << largest << " bits as elements, got " << elementType;
  if (digits.elementBits && bits != digits.elementBits)
    return emitError() << "expects elements of " << digits.elementBits
                       << " bits in " << name << ", got " << elementType;
  // (C3)
  if (partial && (shape.size() != 1 || !digits.isAccumulator()))
    return emitError() << "expects a partial fragment to have one dimension "
                          "and an accumulator's layout, got "
                       << shape.size() << " and " << name;
  return success();
}

FragmentType FragmentType::getRowType(bool isPartial) const {
  return get(getContext(), getRows(), getElementType(), getLayout(), isPartial);
}

LogicalResult InFlightType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                   Type elementType, FragmentLayout layout) {
  // (C1)
  if (failed(verifyFragmentShape(emitError, shape, layout)))
    return failure();
  if (shape.size() != 2)
    return emitError() << "expects rows and columns, got one size";
  if (!LayoutDigits::get(layout, shape[0]).isAccumulator() ||
      isTensorMemory(layout))
    return emitError() << "expects the layout of an accumulator in registers, "
                          "got "
                       << stringifyFragmentLayout(layout);
  if (elementType.isF32() || elementType.isF16() ||
      elementType.isSignlessInteger(32)) // (C2)
    return success();
  return emitError() << "expects f32, f16 or i32 as element type, got "
                     << elementType;
}

FragmentType InFlightType::getComplete() const {
  return FragmentType::get(getContext(), getShape(), getElementType(),
                           getLayout(), /*partial=*/false);
}
