//===- Layouts.h - Layouts of the pages of a cache --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_LAYOUTS_H
#define KVCACHE_LIB_IR_LAYOUTS_H

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/Formats.h"

namespace mlir::kvcache {

/// Whether two elements of a type share a byte.
inline bool isPackedInPairs(Type elementType) {
  const ElementFormat *format = lookupFormat(elementType);
  return format && format->bits == 4;
}

/// A layout as the text of a type gives it: the keyword `nhd` or `hnd`, or
/// strides.
struct ParsedLayout {
  SMLoc loc;
  StringRef keyword;
  LayoutAttrInterface strides;
};

/// Parses `hnd`, `nhd`, `[token = 256, head = 16384]` or an attribute.
ParseResult parseLayout(AsmParser &parser, ParsedLayout &parsed);

/// Gives the layout in the form that types hold: null for packed rows.
ParseResult resolveLayout(AsmParser &parser, const ParsedLayout &parsed,
                          PageShape shape, LayoutAttrInterface &layout);

/// Prints `, layout = [token = 256, head = 16384]`; nothing for null.
void printLayout(AsmPrinter &printer, StringRef name,
                 LayoutAttrInterface layout);

/// The contents of `#kvcache.layout<...>`, and of the brackets in a type.
ParseResult parseStrides(AsmParser &parser, int64_t &token, int64_t &head,
                         int64_t &interleave, int64_t &role);
void printStrides(AsmPrinter &printer, int64_t token, int64_t head,
                  int64_t interleave, int64_t role);

/// Returns the largest power of two, at most `limit`, that divides the size of
/// a head and the distances of tokens and heads, in bytes. Elements, or scales,
/// have `bytes` bytes. An open stride of heads is a multiple of `open`.
uint64_t getRowAlignment(LayoutAttrInterface layout, int64_t headSize,
                         uint64_t bytes, uint64_t open, uint64_t limit);

/// Checks (C7) and (C8) of paged types. An open stride of heads is dynamic, an
/// absent one 0.
LogicalResult verifyPitches(function_ref<InFlightDiagnostic()> emitError,
                            StringRef name, int64_t token, int64_t head,
                            PageShape shape);

/// Checks (C6) to (C8) of paged types.
LogicalResult verifyLayout(function_ref<InFlightDiagnostic()> emitError,
                           StringRef name, LayoutAttrInterface layout,
                           PageShape shape);

/// Checks (C13) of paged types, for elements or scales of `bytes` bytes.
LogicalResult verifyRoleStride(function_ref<InFlightDiagnostic()> emitError,
                               StringRef name, LayoutAttrInterface layout,
                               PageShape shape, int64_t bytes, bool isMLA);

/// Checks (C10) of paged types.
LogicalResult verifyInterleave(function_ref<InFlightDiagnostic()> emitError,
                               LayoutAttrInterface layout,
                               LayoutAttrInterface scaleLayout,
                               PageShape scalesShape);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_LAYOUTS_H
