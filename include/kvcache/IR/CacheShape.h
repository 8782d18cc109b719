//===- CacheShape.h - Shape and alignment of a cache ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_CACHESHAPE_H
#define KVCACHE_IR_CACHESHAPE_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

class StoreQuantizedOp;

/// The alignment in bytes of the blocks and the scales of a cache, and of all
/// strides between pages, layers and roles if the rows have it.
constexpr int64_t kPromisedAlignment = 16;

/// The swizzle of a type as geometry that needs no MLIR has it.
tma::Swizzle toTMA(Swizzle swizzle);

/// Tokens and heads of a page, and the stored elements, or scales, of a head.
struct PageShape {
  /// `ShapedType::kDynamic` if it is known only at run time.
  int64_t pageSize;
  int64_t numHeads, headSize;
};

/// Returns the shape of the pages of a paged type with these parameters.
PageShape getPageShape(Type elementType, ParamsAttr params, int64_t pageSize);

/// Returns the shape of the pages of the scales of a paged type with these
/// parameters, which need not be valid.
PageShape getScalesShape(ParamsAttr params, int64_t pageSize,
                         int64_t granularity, Type zeroPoint,
                         int64_t tokenGranularity);

/// Returns a layout in the form that types hold: null for packed rows, and
/// without a head stride for one head.
LayoutAttrInterface getCanonicalLayout(LayoutAttrInterface layout,
                                       PageShape shape);

/// Whether the stride of heads is known only at run time.
bool isOpen(LayoutAttrInterface layout);

/// Returns the shape of a view, in stored elements, from which descriptors
/// derive their geometry.
tma::CacheShape getShape(CacheTypeInterface cache);

/// Returns the op that bundles the tensors of a view or its collection, or null
/// if a block argument or an unknown op defines it.
BundleOpInterface getBundleOp(Value cache);

/// Returns the dimension of blocks or scales that counts tokens. Pages, and of
/// a collection roles and layers, are before it; heads and elements after it.
inline unsigned getTokensDim(MemRefType tensor) { return tensor.getRank() - 3; }

/// Returns the type of the views of a collection, or of the scales of a
/// collection or view.
CacheTypeInterface getViewType(CacheTypeInterface cache, bool isScales);

/// Returns the elements from the first of a head to the first of the next, as
/// `col_index` counts them; `nullopt` if they are known only at run time.
std::optional<int64_t> getColumnStride(CacheTypeInterface view);

/// Returns the number of stored elements of which the strides between pages,
/// roles and layers of a view must be multiples, and its open head stride:
/// `kPromisedAlignment` in elements, or a smaller alignment if the strides of
/// the type have only that. An open head stride of scales has none.
int64_t getDistanceUnit(CacheTypeInterface view);

/// Returns the largest power of two, at most `limit` bytes, that divides the
/// strides of the tokens and heads of a view, its heads, and the distance of
/// keys and values if its layout has it, in bytes.
uint64_t getInPageAlignment(CacheTypeInterface view, uint64_t limit);

/// Returns the alignment in bytes, a power of two, of the first row of every
/// page of a view, or of its scales, from the alignment `tensorAlignment` of
/// the tensor and the static strides. It is at most `kPromisedAlignment` if a
/// stride is dynamic.
uint64_t getPageAlignment(Value view, bool isScales, uint64_t tensorAlignment);

/// Whether the page stride of a view is a multiple of a row, so that row
/// numbers run through all pages. `nullopt` for a dynamic stride.
std::optional<bool> arePagesWholeRowsApart(Value view);

/// Creates a `kvcache.check` that `distance`, in elements from a page to the
/// next, is a multiple of `row` elements, because `op` counts rows through all
/// pages. A single page passes.
void createRowDistanceCheck(OpBuilder &builder, Operation *op, Value distance,
                            Value pages, int64_t row);

/// Checks that the first element of an access is a multiple of its width, where
/// it is a constant: a verifier can't, because dead code may break the rule.
LogicalResult checkConstantElement(AccessOpInterface op);

/// Checks likewise that the first of the tokens whose shared scales an op
/// writes is a multiple of their number.
LogicalResult checkConstantToken(StoreQuantizedOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_IR_CACHESHAPE_H
