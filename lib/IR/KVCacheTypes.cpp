//===- KVCacheTypes.cpp - Attributes and types of the kvcache dialect -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Page sizes: `64`, or `?` for a page size known only at run time
//===----------------------------------------------------------------------===//

static ParseResult parsePageSize(AsmParser &parser, int64_t &pageSize) {
  if (succeeded(parser.parseOptionalQuestion())) {
    pageSize = ShapedType::kDynamic;
    return success();
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(pageSize))
    return failure();
  // Text must use `?` instead of the number that represents a dynamic size.
  if (ShapedType::isDynamic(pageSize))
    return parser.emitError(loc, "expects page_size to be positive, got ")
           << pageSize;
  return success();
}

static void printPageSize(AsmPrinter &printer, int64_t pageSize) {
  if (ShapedType::isDynamic(pageSize))
    printer << "?";
  else
    printer << pageSize;
}

//===----------------------------------------------------------------------===//
// Options of paged caches: `, scale = f32, granularity = 64, layout = hnd`
//===----------------------------------------------------------------------===//

static ParseResult parseGranularity(AsmParser &parser, int64_t &granularity) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(granularity))
    return failure();
  // 0 represents an absent granularity.
  if (granularity == 0)
    return parser.emitError(loc, "expects granularity to be positive, got 0");
  return success();
}

static ParseResult parseTable(AsmParser &parser,
                              std::optional<TableKind> &kind) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  kind = symbolizeTableKind(keyword);
  if (!kind)
    return parser.emitError(loc, "expects table to be 'dense', 'csr' or "
                                 "'rows', got '")
           << keyword << "'";
  return success();
}

static ParseResult parsePagedOptions(AsmParser &parser, Type elementType,
                                     ParamsAttr params, int64_t pageSize,
                                     Type &scale, int64_t &granularity,
                                     LayoutAttrInterface &layout,
                                     LayoutAttrInterface &scaleLayout,
                                     TableKind &table) {
  std::optional<ParsedLayout> elements, scales;
  std::optional<TableKind> kind;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    ParseResult parsed = failure();
    if (keyword == "scale" && !scale)
      parsed = parser.parseType(scale);
    else if (keyword == "granularity" && !granularity)
      parsed = parseGranularity(parser, granularity);
    else if (keyword == "layout" && !elements)
      parsed = parseLayout(parser, elements.emplace());
    else if (keyword == "scale_layout" && !scales)
      parsed = parseLayout(parser, scales.emplace());
    else if (keyword == "table" && !kind)
      parsed = parseTable(parser, kind);
    else
      return parser.emitError(loc, "expects 'scale', 'granularity', 'layout', "
                                   "'scale_layout' or 'table', each at most "
                                   "once, got '")
             << keyword << "'";
    if (parsed)
      return failure();
  }
  table = kind.value_or(TableKind::Dense);
  if (scales && (!scale || granularity <= 0))
    return parser.emitError(
        scales->loc, "expects scale_layout only with scale and granularity");
  PageShape shape = getPageShape(elementType, params, pageSize);
  if (elements && resolveLayout(parser, *elements, shape, layout))
    return failure();
  shape.headSize =
      scales ? llvm::divideCeil(params.getHeadSize(), granularity) : 0;
  return scales ? resolveLayout(parser, *scales, shape, scaleLayout)
                : success();
}

static void printPagedOptions(AsmPrinter &printer, Type, ParamsAttr, int64_t,
                              Type scale, int64_t granularity,
                              LayoutAttrInterface layout,
                              LayoutAttrInterface scaleLayout,
                              TableKind table) {
  if (scale)
    printer << ", scale = " << scale << ", granularity = " << granularity;
  printLayout(printer, "layout", layout);
  printLayout(printer, "scale_layout", scaleLayout);
  if (table != TableKind::Dense)
    printer << ", table = " << stringifyTableKind(table);
}

//===----------------------------------------------------------------------===//
// Scales: the type of the cache
//===----------------------------------------------------------------------===//

/// Generated code for a parameter would add an error to that of the type.
static ParseResult parseCacheOfScales(AsmParser &parser, Type &cache) {
  return parser.parseType(cache);
}

static void printCacheOfScales(AsmPrinter &printer, Type cache) {
  printer << cache;
}

//===----------------------------------------------------------------------===//
// Row indices: `rows = 128, page_size = 64`, in any order
//===----------------------------------------------------------------------===//

static ParseResult parseRows(AsmParser &parser, int64_t &rows,
                             int64_t &pageSize) {
  bool hasRows = false, hasPageSize = false;
  SMLoc start = parser.getCurrentLocation();
  do {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    bool isRows = keyword == "rows";
    bool &seen = isRows ? hasRows : hasPageSize;
    if ((!isRows && keyword != "page_size") || seen)
      return parser.emitError(loc, "expects 'rows' and 'page_size', each at "
                                   "most once, got '")
             << keyword << "'";
    seen = true;
    if (isRows ? parser.parseInteger(rows) : parsePageSize(parser, pageSize))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  if (!hasRows)
    return parser.emitError(start, "expects 'rows'");
  // 0 represents an absent page size.
  if (hasPageSize && pageSize == 0)
    return parser.emitError(start, "expects page_size to be positive, got 0");
  return success();
}

static void printRows(AsmPrinter &printer, int64_t rows, int64_t pageSize) {
  printer << "rows = " << rows;
  if (!pageSize)
    return;
  printer << ", page_size = ";
  printPageSize(printer, pageSize);
}

//===----------------------------------------------------------------------===//
// Tiles: `64x128xbf16`
//===----------------------------------------------------------------------===//

static ParseResult parseTileShape(AsmParser &parser, int64_t &rows,
                                  int64_t &columns, Type &elementType) {
  SmallVector<int64_t, 2> shape;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false,
                                /*withTrailingX=*/true))
    return failure();
  if (shape.size() != 2)
    return parser.emitError(loc, "expects rows and columns, got ")
           << shape.size() << " sizes";
  rows = shape[0];
  columns = shape[1];
  return parser.parseType(elementType);
}

static void printTileShape(AsmPrinter &printer, int64_t rows, int64_t columns,
                           Type elementType) {
  printer << rows << "x" << columns << "x" << elementType;
}

//===----------------------------------------------------------------------===//
// Pipes: `, !tile, !tile, producers = 1`
//===----------------------------------------------------------------------===//

static ParseResult parsePipeTiles(AsmParser &parser,
                                  SmallVectorImpl<Type> &tiles,
                                  int64_t &producers) {
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalKeyword("producers"))) {
      if (parser.parseEqual() || parser.parseInteger(producers))
        return failure();
      // 0 represents all threads.
      if (producers == 0)
        return parser.emitError(loc, "expects producers to be positive, got 0");
      return success();
    }
    if (parser.parseType(tiles.emplace_back()))
      return failure();
  }
  return success();
}

static void printPipeTiles(AsmPrinter &printer, ArrayRef<Type> tiles,
                           int64_t producers) {
  for (Type tile : tiles)
    printer << ", " << tile;
  if (producers)
    printer << ", producers = " << producers;
}

//===----------------------------------------------------------------------===//
// Boxes: `64x1x64xbf16`, then `, swizzle_128b, l2_promotion = 128`
//===----------------------------------------------------------------------===//

static ParseResult parseBox(AsmParser &parser, SmallVectorImpl<int64_t> &box,
                            Type &elementType) {
  return failure(parser.parseDimensionList(box, /*allowDynamic=*/false,
                                           /*withTrailingX=*/true) ||
                 parser.parseType(elementType));
}

static void printBox(AsmPrinter &printer, ArrayRef<int64_t> box,
                     Type elementType) {
  for (int64_t side : box)
    printer << side << "x";
  printer << elementType;
}

static ParseResult parseBoxOptions(AsmParser &parser, Swizzle &swizzle,
                                   int64_t &l2Promotion) {
  bool hasSwizzle = false;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<Swizzle> parsed = symbolizeSwizzle(keyword);
    if (parsed && !hasSwizzle) {
      swizzle = *parsed;
      hasSwizzle = true;
    } else if (keyword == "l2_promotion" && !l2Promotion) {
      if (parser.parseEqual() || parser.parseInteger(l2Promotion))
        return failure();
      if (l2Promotion == 0)
        return parser.emitError(loc, "expects l2_promotion to be 64, 128 or "
                                     "256, got 0");
    } else {
      return parser.emitError(loc, "expects a swizzle or 'l2_promotion', each "
                                   "at most once, got '")
             << keyword << "'";
    }
  }
  return success();
}

static void printBoxOptions(AsmPrinter &printer, Swizzle swizzle,
                            int64_t l2Promotion) {
  if (swizzle != Swizzle::None)
    printer << ", " << stringifySwizzle(swizzle);
  if (l2Promotion)
    printer << ", l2_promotion = " << l2Promotion;
}

#define GET_ATTRDEF_CLASSES
#include "kvcache/IR/KVCacheAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "kvcache/IR/KVCacheTypes.cpp.inc"

void KVCacheDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "kvcache/IR/KVCacheAttrs.cpp.inc"
      >();
}

void KVCacheDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "kvcache/IR/KVCacheTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

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

/// The element types of a cache without scales.
static bool isPlainElementType(Type type) {
  return isa<Float32Type, Float16Type, BFloat16Type, Float8E4M3FNType,
             Float8E5M2Type>(type);
}

static bool isScaleType(Type type) {
  return isa<Float32Type, Float16Type, BFloat16Type, Float8E8M0FNUType,
             Float8E4M3FNType>(type);
}

/// Checks (C2) to (C5) of paged collections and views.
static LogicalResult verifyQuantization(EmitError emitError, Type elementType,
                                        ParamsAttr params, Type scale,
                                        int64_t granularity) {
  bool is4Bit = isa<Float4E2M1FNType>(elementType);
  if (!isPlainElementType(elementType) && !is4Bit &&
      !elementType.isSignlessInteger(8))
    return emitError() << "expects an element type of f32, f16, bf16, "
                          "f8E4M3FN, f8E5M2, i8 or f4E2M1FN, got "
                       << elementType; // (C2)
  if (!scale && granularity != 0)
    return emitError() << "expects granularity only with a scale type"; // (C3)
  if (!scale && !isPlainElementType(elementType))
    return emitError() << "expects a scale type for elements of type "
                       << elementType; // (C2)
  if (!scale)
    return success();
  if (granularity == 0)
    return emitError() << "expects granularity with a scale type"; // (C3)
  if (granularity < 0)
    return emitError() << "expects granularity to be positive, got "
                       << granularity; // (C3)
  // (C4)
  if (!isScaleType(scale))
    return emitError() << "expects a scale type of f32, f16, bf16, f8E8M0FNU "
                          "or f8E4M3FN, got "
                       << scale;
  if (elementType.getIntOrFloatBitWidth() > 8)
    return emitError() << "expects quantized elements of at most 8 bits, got "
                       << elementType;
  if (!is4Bit)
    return success();
  bool isNVFP4 = granularity == 16 && isa<Float8E4M3FNType>(scale);
  bool isMX = granularity == 32 && isa<Float8E8M0FNUType>(scale);
  if (!isNVFP4 && !isMX)
    return emitError() << "expects f4E2M1FN with granularity 16 and scales of "
                          "f8E4M3FN (NVFP4), or 32 and f8E8M0FNU (MX), got "
                       << granularity << " and " << scale;
  if (params.getHeadSize() % 2 != 0) // (C5)
    return emitError() << "expects an even head_size for f4E2M1FN, got "
                       << params.getHeadSize();
  return success();
}

static LogicalResult verifyPaged(EmitError emitError, Type elementType,
                                 ParamsAttr params, int64_t pageSize,
                                 Type scale, int64_t granularity,
                                 LayoutAttrInterface layout,
                                 LayoutAttrInterface scaleLayout) {
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
                                granularity)))
    return failure();
  // (C6) to (C8)
  PageShape shape = getPageShape(elementType, params, pageSize);
  if (failed(verifyLayout(emitError, "layout", layout, shape)))
    return failure();
  if (!scaleLayout)
    return success();
  // (C9)
  if (!scale)
    return emitError() << "expects scale_layout only with scale and "
                          "granularity";
  shape.headSize = llvm::divideCeil(params.getHeadSize(), granularity);
  return verifyLayout(emitError, "scale_layout", scaleLayout, shape);
}

static LogicalResult verifyContinuous(EmitError emitError, Type elementType) {
  // (C1)
  if (!isPlainElementType(elementType))
    return emitError() << "expects an element type of f32, f16, bf16, f8E4M3FN "
                          "or f8E5M2, got "
                       << elementType;
  return success();
}

LogicalResult PagedCollectionType::verify(EmitError emitError, Type elementType,
                                          ParamsAttr params, int64_t pageSize,
                                          Type scale, int64_t granularity,
                                          LayoutAttrInterface layout,
                                          LayoutAttrInterface scaleLayout,
                                          TableKind) {
  return verifyPaged(emitError, elementType, params, pageSize, scale,
                     granularity, layout, scaleLayout);
}

LogicalResult PagedCacheType::verify(EmitError emitError, Type elementType,
                                     ParamsAttr params, int64_t pageSize,
                                     Type scale, int64_t granularity,
                                     LayoutAttrInterface layout,
                                     LayoutAttrInterface scaleLayout,
                                     TableKind) {
  return verifyPaged(emitError, elementType, params, pageSize, scale,
                     granularity, layout, scaleLayout);
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
  auto paged = dyn_cast<PagedCacheType>(cache);
  if (!paged || !paged.isQuantized())
    return emitError() << "expects a view of a quantized paged cache, got "
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
// Parts
//===----------------------------------------------------------------------===//

Type kvcache::getStorageType(Type elementType) {
  return elementType.getIntOrFloatBitWidth() < 8
             ? IntegerType::get(elementType.getContext(), 8)
             : elementType;
}

StringRef kvcache::stringifyPartKind(PartKind kind) {
  switch (kind) {
  case PartKind::Blocks:
    return "blocks";
  case PartKind::NumPages:
    return "num_pages";
  case PartKind::NumLayers:
    return "num_layers";
  case PartKind::RoleStride:
    return "role_stride";
  case PartKind::LayerStride:
    return "layer_stride";
  case PartKind::PageStride:
    return "page_stride";
  case PartKind::HeadStride:
    return "head_stride";
  case PartKind::PageSize:
    return "page_size";
  case PartKind::BlockTokens:
    return "block_tokens";
  case PartKind::Lengths:
    return "cache_lengths";
  case PartKind::Batch:
    return "batch";
  case PartKind::Table:
    return "lookup_table";
  case PartKind::Columns:
    return "table_columns";
  case PartKind::TableStride:
    return "table_stride";
  case PartKind::TableStarts:
    return "table_starts";
  case PartKind::TableRows:
    return "table_rows";
  case PartKind::NumTableRows:
    return "num_table_rows";
  case PartKind::MaxSeqLength:
    return "max_seq_length";
  case PartKind::MaxCacheLength:
    return "max_cache_length";
  case PartKind::Scales:
    return "scales";
  case PartKind::ScalePages:
    return "scale_pages";
  case PartKind::ScaleRoleStride:
    return "scale_role_stride";
  case PartKind::ScaleLayerStride:
    return "scale_layer_stride";
  case PartKind::ScalePageStride:
    return "scale_page_stride";
  case PartKind::ScaleHeadStride:
    return "scale_head_stride";
  case PartKind::ScaleTable:
    return "scale_table";
  case PartKind::ScaleColumns:
    return "scale_columns";
  case PartKind::ScaleTableStride:
    return "scale_table_stride";
  case PartKind::TableEntry:
    return "table_entry";
  case PartKind::RowsPerPage:
    return "rows_per_page";
  case PartKind::Row:
    return "row";
  case PartKind::TileMemory:
    return "tile_memory";
  }
  llvm_unreachable("covered switch");
}

/// A pointer to elements: a rank-0 memref with a run-time offset.
static MemRefType getPointerType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  return MemRefType::get(
      {}, elementType,
      StridedLayoutAttr::get(context, ShapedType::kDynamic, {}));
}

/// The parts of any collection or view, from its interface.
static SmallVector<Part> getCacheParts(CacheTypeInterface cache) {
  MLIRContext *context = cache.getContext();
  Type i32 = IntegerType::get(context, 32);
  Type index = IndexType::get(context);
  MemRefType table = getPointerType(i32);
  bool collection = cache.isCollection();

  SmallVector<Part> parts;
  parts.push_back({PartKind::Blocks, getPointerType(cache.getStorageType())});
  parts.push_back({PartKind::NumPages, i32});
  if (collection) {
    parts.push_back({PartKind::NumLayers, i32});
    if (!cache.isMLA())
      parts.push_back({PartKind::RoleStride, index});
    parts.push_back({PartKind::LayerStride, index});
  }
  parts.push_back({PartKind::PageStride, index});
  if (cache.hasOpenHeadStride())
    parts.push_back({PartKind::HeadStride, index});
  if (!cache.isPaged())
    parts.push_back({PartKind::BlockTokens, i32});
  else if (!cache.hasStaticPageSize())
    parts.push_back({PartKind::PageSize, i32});
  parts.push_back({PartKind::Lengths, table});
  parts.push_back({PartKind::Batch, i32});
  parts.push_back({PartKind::Table, table});
  if (cache.isPaged())
    parts.push_back({PartKind::Columns, i32});
  if (cache.getTable() == TableKind::CSR)
    parts.push_back({PartKind::TableStarts, table});
  else if (cache.isPaged())
    parts.push_back({PartKind::TableStride, i32});
  if (cache.getTable() == TableKind::Rows) {
    parts.push_back({PartKind::TableRows, table});
    parts.push_back({PartKind::NumTableRows, i32});
  }
  parts.push_back({PartKind::MaxSeqLength, i32});
  parts.push_back({PartKind::MaxCacheLength, i32});
  if (!cache.isQuantized())
    return parts;

  parts.push_back({PartKind::Scales, getPointerType(cache.getScale())});
  parts.push_back({PartKind::ScalePages, i32});
  if (collection) {
    if (!cache.isMLA())
      parts.push_back({PartKind::ScaleRoleStride, index});
    parts.push_back({PartKind::ScaleLayerStride, index});
  }
  parts.push_back({PartKind::ScalePageStride, index});
  if (isOpen(cache.getScaleLayout()))
    parts.push_back({PartKind::ScaleHeadStride, index});
  // Only dense tables differ for elements and scales.
  if (cache.getTable() != TableKind::Dense)
    return parts;
  parts.push_back({PartKind::ScaleTable, table});
  parts.push_back({PartKind::ScaleColumns, i32});
  parts.push_back({PartKind::ScaleTableStride, i32});
  return parts;
}

SmallVector<Part> PagedCollectionType::getParts() const {
  return getCacheParts(*this);
}
SmallVector<Part> PagedCacheType::getParts() const {
  return getCacheParts(*this);
}
SmallVector<Part> ContinuousCollectionType::getParts() const {
  return getCacheParts(*this);
}
SmallVector<Part> ContinuousCacheType::getParts() const {
  return getCacheParts(*this);
}

//===----------------------------------------------------------------------===//
// Scales as a cache
//===----------------------------------------------------------------------===//

Type ScalesType::getElementType() const { return getPagedCache().getScale(); }
ParamsAttr ScalesType::getParams() const { return getPagedCache().getParams(); }
int64_t ScalesType::getPageSize() const {
  return getPagedCache().getPageSize();
}
Type ScalesType::getScale() const { return {}; }
int64_t ScalesType::getGranularity() const { return 0; }
LayoutAttrInterface ScalesType::getLayout() const {
  return getPagedCache().getScaleLayout();
}
TableKind ScalesType::getTable() const { return getPagedCache().getTable(); }
bool ScalesType::isCollection() const { return false; }
int64_t ScalesType::getElementsPerLane() const {
  return getPagedCache().getGranularity();
}

SmallVector<Part> ScalesType::getParts() const {
  bool sharesTable = getTable() != TableKind::Dense;
  auto isOfScales = [&](const Part &part) {
    switch (part.kind) {
    case PartKind::Table:
    case PartKind::Columns:
    case PartKind::TableStride:
    case PartKind::TableStarts:
    case PartKind::TableRows:
    case PartKind::NumTableRows:
      return sharesTable;
    case PartKind::PageSize:
    case PartKind::Lengths:
    case PartKind::Batch:
    case PartKind::MaxCacheLength:
    case PartKind::Scales:
    case PartKind::ScalePages:
    case PartKind::ScalePageStride:
    case PartKind::ScaleHeadStride:
    case PartKind::ScaleTable:
    case PartKind::ScaleColumns:
    case PartKind::ScaleTableStride:
      return true;
    default:
      return false;
    }
  };
  return llvm::filter_to_vector(getPagedCache().getParts(), isOfScales);
}

//===----------------------------------------------------------------------===//
// Row indices
//===----------------------------------------------------------------------===//

SmallVector<Part> RowIndicesType::getParts() const {
  Type index = IndexType::get(getContext());
  SmallVector<Part> parts;
  for (int64_t page = 0; page < getNumPages(); ++page)
    parts.push_back({PartKind::Row, index});
  if (getNumPages() == 1)
    return parts;
  parts.push_back({PartKind::TableEntry,
                   getPointerType(IntegerType::get(getContext(), 32))});
  parts.push_back({PartKind::RowsPerPage, index});
  return parts;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

tma::TileLayout TileType::getLayout() const {
  return {getRows(), getColumns(),
          static_cast<int64_t>(getElementType().getIntOrFloatBitWidth()) / 8,
          toTMA(getSwizzle())};
}

MemRefType TileType::getMemoryType() const {
  auto shared =
      gpu::AddressSpaceAttr::get(getContext(), gpu::AddressSpace::Workgroup);
  return MemRefType::get({getLayout().getBytes()},
                         IntegerType::get(getContext(), 8),
                         MemRefLayoutAttrInterface(), shared);
}

SmallVector<Part> TokenType::getParts() const { return {}; }

SmallVector<Part> TileType::getParts() const {
  return {{PartKind::TileMemory, getMemoryType()}};
}
