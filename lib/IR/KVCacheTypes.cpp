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

static ParseResult parseGranularity(AsmParser &parser, StringRef name,
                                    int64_t &granularity) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(granularity))
    return failure();
  // 0 represents an absent granularity.
  if (granularity == 0)
    return parser.emitError(loc, "expects ")
           << name << " to be positive, got 0";
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
                                     TableKind &table, Type &zeroPoint,
                                     int64_t &tokenGranularity) {
  std::optional<ParsedLayout> elements, scales;
  std::optional<TableKind> kind;
  tokenGranularity = 0;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    ParseResult parsed = failure();
    if (keyword == "scale" && !scale)
      parsed = parser.parseType(scale);
    else if (keyword == "granularity" && !granularity)
      parsed = parseGranularity(parser, keyword, granularity);
    else if (keyword == "zero_point" && !zeroPoint)
      parsed = parser.parseType(zeroPoint);
    else if (keyword == "token_granularity" && !tokenGranularity)
      parsed = parseGranularity(parser, keyword, tokenGranularity);
    else if (keyword == "layout" && !elements)
      parsed = parseLayout(parser, elements.emplace());
    else if (keyword == "scale_layout" && !scales)
      parsed = parseLayout(parser, scales.emplace());
    else if (keyword == "table" && !kind)
      parsed = parseTable(parser, kind);
    else
      return parser.emitError(loc, "expects 'scale', 'granularity', "
                                   "'zero_point', 'token_granularity', "
                                   "'layout', 'scale_layout' or 'table', each "
                                   "at most once, got '")
             << keyword << "'";
    if (parsed)
      return failure();
  }
  table = kind.value_or(TableKind::Dense);
  if (!tokenGranularity)
    tokenGranularity = 1;
  // Each element has a scale of its own unless the type says otherwise.
  if (scale && !granularity)
    granularity = 1;
  if (scales && (!scale || granularity <= 0))
    return parser.emitError(
        scales->loc, "expects scale_layout only with scale and granularity");
  PageShape shape = getPageShape(elementType, params, pageSize);
  if (elements && resolveLayout(parser, *elements, shape, layout))
    return failure();
  if (!scales)
    return success();
  shape = getScalesShape(params, pageSize, granularity, zeroPoint,
                         tokenGranularity);
  return resolveLayout(parser, *scales, shape, scaleLayout);
}

static void printPagedOptions(AsmPrinter &printer, Type, ParamsAttr, int64_t,
                              Type scale, int64_t granularity,
                              LayoutAttrInterface layout,
                              LayoutAttrInterface scaleLayout, TableKind table,
                              Type zeroPoint, int64_t tokenGranularity) {
  if (scale)
    printer << ", scale = " << scale << ", granularity = " << granularity;
  if (zeroPoint)
    printer << ", zero_point = " << zeroPoint;
  if (tokenGranularity != 1)
    printer << ", token_granularity = " << tokenGranularity;
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
// Boxes and fragments: `64x1x64xbf16`; of boxes, then `, swizzle_128b,
// l2_promotion = 128`
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

//===----------------------------------------------------------------------===//
// Fragments: `64x128xf32` or `64xf32`, then `, partial`
//===----------------------------------------------------------------------===//

static ParseResult parsePartial(AsmParser &parser, bool &isPartial) {
  isPartial = succeeded(parser.parseOptionalComma());
  return isPartial ? parser.parseKeyword("partial") : success();
}

static void printPartial(AsmPrinter &printer, bool isPartial) {
  if (isPartial)
    printer << ", partial";
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
