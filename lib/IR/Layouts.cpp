//===- Layouts.cpp - Layouts of the pages of a cache ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The exclusive limit of the elements that a page spans, and of strides: more
/// than any memory has, and few enough for sums of products in 64 bits.
static constexpr int64_t kMaxSpan = int64_t(1) << 40;

//===----------------------------------------------------------------------===//
// Canonical form
//===----------------------------------------------------------------------===//

PageShape kvcache::getPageShape(Type elementType, ParamsAttr params,
                                int64_t pageSize) {
  int64_t perStored = isPackedInPairs(elementType) ? 2 : 1;
  return {pageSize, params.getNumHeads(), params.getHeadSize() / perStored};
}

PageShape kvcache::getScalesShape(ParamsAttr params, int64_t pageSize,
                                  int64_t granularity, Type zeroPoint,
                                  int64_t tokenGranularity) {
  if (!ShapedType::isDynamic(pageSize) && tokenGranularity > 0)
    pageSize /= tokenGranularity;
  int64_t groups = llvm::divideCeil(params.getHeadSize(), granularity);
  return {pageSize, params.getNumHeads(), zeroPoint ? 2 * groups : groups};
}

LayoutAttrInterface kvcache::getCanonicalLayout(LayoutAttrInterface layout,
                                                PageShape shape) {
  auto strides = dyn_cast_if_present<LayoutAttr>(layout);
  if (!strides)
    return layout;
  int64_t token = strides.getTokenStride();
  int64_t head = shape.numHeads == 1 ? 0 : strides.getHeadStride();
  bool isPacked = token == shape.numHeads * shape.headSize &&
                  (shape.numHeads == 1 || head == shape.headSize) &&
                  strides.getInterleave() == 1 && strides.getRoleStride() == 0;
  return isPacked ? LayoutAttrInterface()
                  : LayoutAttr::get(layout.getContext(), token, head,
                                    strides.getInterleave(),
                                    strides.getRoleStride());
}

uint64_t kvcache::getRowAlignment(LayoutAttrInterface layout, int64_t headSize,
                                  uint64_t bytes, uint64_t open,
                                  uint64_t limit) {
  // Distances may be those of heads, as of values after their keys.
  uint64_t alignment = llvm::MinAlign(limit, headSize * bytes);
  alignment = llvm::MinAlign(alignment, layout.getTokenStride() * bytes);
  if (isOpen(layout))
    return llvm::MinAlign(alignment, open);
  return llvm::MinAlign(alignment, layout.getHeadStride() * bytes);
}

bool kvcache::isOpen(LayoutAttrInterface layout) {
  return layout && ShapedType::isDynamic(layout.getHeadStride());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Parses the number of `keyword`, or `?` for the stride of heads.
static ParseResult parseStride(AsmParser &parser, StringRef keyword,
                               int64_t &stride) {
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalQuestion())) {
    stride = ShapedType::kDynamic;
    if (keyword == "head")
      return success();
    return parser.emitError(loc, "expects a number for '")
           << keyword << "', because only the stride of heads may be '?'";
  }
  if (parser.parseInteger(stride))
    return failure();
  // 0 represents an absent stride, and a negative number `?`.
  if (stride <= 0)
    return parser.emitError(loc, "expects strides to be positive, got ")
           << stride;
  return success();
}

ParseResult kvcache::parseStrides(AsmParser &parser, int64_t &token,
                                  int64_t &head, int64_t &interleave,
                                  int64_t &role) {
  token = head = interleave = role = 0;
  SMLoc start = parser.getCurrentLocation();
  do {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    int64_t *number = llvm::StringSwitch<int64_t *>(keyword)
                          .Case("token", &token)
                          .Case("head", &head)
                          .Case("interleave", &interleave)
                          .Case("role", &role)
                          .Default(nullptr);
    if (!number || *number)
      return parser.emitError(loc, "expects 'token', 'head', 'role' and "
                                   "'interleave', each at most once, got '")
             << keyword << "'";
    if (parseStride(parser, keyword, *number))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  if (!token)
    return parser.emitError(start, "expects 'token'");
  interleave = std::max<int64_t>(interleave, 1);
  return success();
}

void kvcache::printStrides(AsmPrinter &printer, int64_t token, int64_t head,
                           int64_t interleave, int64_t role) {
  printer << "token = " << token;
  if (ShapedType::isDynamic(head))
    printer << ", head = ?";
  else if (head != 0)
    printer << ", head = " << head;
  if (role != 0)
    printer << ", role = " << role;
  if (interleave != 1)
    printer << ", interleave = " << interleave;
}

ParseResult kvcache::parseLayout(AsmParser &parser, ParsedLayout &parsed) {
  parsed.loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword(&parsed.keyword, {"nhd", "hnd"})))
    return success();
  if (failed(parser.parseOptionalLSquare())) {
    Attribute attribute;
    if (parser.parseAttribute(attribute))
      return failure();
    parsed.strides = dyn_cast<LayoutAttrInterface>(attribute);
    if (parsed.strides)
      return success();
    return parser.emitError(parsed.loc, "expects 'nhd', 'hnd', strides or a "
                                        "layout, got ")
           << attribute;
  }
  int64_t token, head, interleave, role;
  if (parseStrides(parser, token, head, interleave, role) ||
      parser.parseRSquare())
    return failure();
  parsed.strides =
      LayoutAttr::get(parser.getContext(), token, head, interleave, role);
  return success();
}

ParseResult kvcache::resolveLayout(AsmParser &parser,
                                   const ParsedLayout &parsed, PageShape shape,
                                   LayoutAttrInterface &layout) {
  LayoutAttrInterface strides = parsed.strides;
  // A page of one token has its heads in either order.
  if (parsed.keyword == "hnd" && shape.pageSize != 1) {
    int64_t head = ShapedType::kDynamic;
    // The verifier reports a page that is too large.
    if (!ShapedType::isDynamic(shape.pageSize) &&
        llvm::MulOverflow(shape.pageSize, shape.headSize, head))
      head = kMaxSpan;
    strides = LayoutAttr::get(parser.getContext(), shape.headSize, head);
  }
  layout = getCanonicalLayout(strides, shape);
  return success();
}

void kvcache::printLayout(AsmPrinter &printer, StringRef name,
                          LayoutAttrInterface layout) {
  if (!layout)
    return;
  printer << ", " << name << " = ";
  auto strides = dyn_cast<LayoutAttr>(layout);
  if (!strides) {
    printer << layout;
    return;
  }
  printer << "[";
  printStrides(printer, strides.getTokenStride(), strides.getHeadStride(),
               strides.getInterleave(), strides.getRoleStride());
  printer << "]";
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

/// The elements from the first of `count` pieces to the last, each `size`
/// elements long and `stride` after the one before; `kMaxSpan` if there are
/// more.
static int64_t getSpan(int64_t count, int64_t stride, int64_t size) {
  int64_t span;
  if (llvm::MulOverflow(count - 1, stride, span) ||
      llvm::AddOverflow(span, size, span))
    return kMaxSpan;
  return std::min(span, kMaxSpan);
}

/// Checks that the elements of tokens and heads do not overlap (C8). What the
/// type leaves open, the bounds checks check.
static LogicalResult
verifyDisjoint(function_ref<InFlightDiagnostic()> emitError, StringRef name,
               int64_t token, int64_t head, PageShape shape) {
  if (token < shape.headSize)
    return emitError() << "expects the token stride of " << name
                       << " to be at least a head (" << shape.headSize
                       << "), got " << token;
  if (head == 0 || ShapedType::isDynamic(head))
    return success();
  if (head < shape.headSize)
    return emitError() << "expects the head stride of " << name
                       << " to be at least a head (" << shape.headSize
                       << "), got " << head;
  int64_t heads = getSpan(shape.numHeads, head, shape.headSize);
  // Of an open page size, one token is known.
  int64_t pageSize = ShapedType::isDynamic(shape.pageSize) ? 1 : shape.pageSize;
  int64_t tokens = getSpan(pageSize, token, shape.headSize);
  if (pageSize == 1 || heads <= token || tokens <= head)
    return success();
  return emitError() << "expects the elements of " << name
                     << " not to overlap: heads span " << heads
                     << " elements, and tokens are " << token
                     << " apart; tokens span " << tokens << ", and heads are "
                     << head << " apart";
}

LogicalResult
kvcache::verifyPitches(function_ref<InFlightDiagnostic()> emitError,
                       StringRef name, int64_t token, int64_t head,
                       PageShape shape) {
  bool hasHead = head != 0 && !ShapedType::isDynamic(head);
  // (C7)
  auto verifyStride = [&](StringRef of, int64_t stride) -> LogicalResult {
    if (stride > 0 && stride < kMaxSpan)
      return success();
    return emitError() << "expects the " << of << " stride of " << name
                       << " to be from 1 to 2^40 - 1, got " << stride;
  };
  if (failed(verifyStride("token", token)) ||
      (hasHead && failed(verifyStride("head", head))))
    return failure();
  // (C8)
  if (failed(verifyDisjoint(emitError, name, token, head, shape)))
    return failure();
  // (C7)
  int64_t span = shape.headSize;
  if (!ShapedType::isDynamic(shape.pageSize))
    span = getSpan(shape.pageSize, token, span);
  if (hasHead)
    span = getSpan(shape.numHeads, head, span);
  if (span >= kMaxSpan)
    return emitError() << "expects a page of " << name
                       << " to span fewer than 2^40 elements";
  return success();
}

LogicalResult
kvcache::verifyLayout(function_ref<InFlightDiagnostic()> emitError,
                      StringRef name, LayoutAttrInterface layout,
                      PageShape shape) {
  if (!layout)
    return success();
  int64_t token = layout.getTokenStride(), head = layout.getHeadStride();
  // (C6)
  if ((head != 0) != (shape.numHeads > 1))
    return emitError() << "expects " << name
                       << " to have a head stride if and only if there are "
                          "several heads, got "
                       << shape.numHeads << " of them";
  if (failed(verifyPitches(emitError, name, token, head, shape)))
    return failure();
  if (getCanonicalLayout(layout, shape) != layout)
    return emitError() << "expects no " << name << " for packed rows";
  return success();
}

LogicalResult
kvcache::verifyRoleStride(function_ref<InFlightDiagnostic()> emitError,
                          StringRef name, LayoutAttrInterface layout,
                          PageShape shape, int64_t bytes, bool isMLA) {
  int64_t role = layout ? layout.getRoleStride() : 0;
  if (role == 0)
    return success();
  if (isMLA)
    return emitError() << "expects 'role' of " << name
                       << " only for a cache of keys and values";
  if (role < shape.headSize || role >= kMaxSpan)
    return emitError() << "expects 'role' of " << name << " to be from a head ("
                       << shape.headSize << ") to 2^40 - 1, got " << role;
  uint64_t alignment = getRowAlignment(layout, shape.headSize, bytes,
                                       /*open=*/kPromisedAlignment,
                                       /*limit=*/kPromisedAlignment);
  if (role * bytes % alignment == 0)
    return emitError() << "expects 'role' of " << name
                       << " only if it is less aligned than tokens and heads ("
                       << alignment << " bytes), got " << role;
  return success();
}

LogicalResult kvcache::verifyInterleave(
    function_ref<InFlightDiagnostic()> emitError, LayoutAttrInterface layout,
    LayoutAttrInterface scaleLayout, PageShape scalesShape) {
  // (C10)
  if (layout && layout.getInterleave() != 1)
    return emitError() << "expects 'interleave' only in scale_layout";
  int64_t interleave = scaleLayout ? scaleLayout.getInterleave() : 1;
  if (interleave == 1)
    return success();
  if (interleave < 1)
    return emitError() << "expects 'interleave' to be positive, got "
                       << interleave;
  if (ShapedType::isDynamic(scalesShape.pageSize))
    return emitError() << "expects a number for page_size with 'interleave'";
  if (scalesShape.pageSize % interleave == 0 &&
      scalesShape.headSize % interleave == 0)
    return success();
  return emitError() << "expects 'interleave' to divide page_size ("
                     << scalesShape.pageSize << ") and the groups of a head ("
                     << scalesShape.headSize << "), got " << interleave;
}
