//===- CacheShape.h - Shape and alignment of a cache ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_CACHESHAPE_H
#define KVCACHE_IR_CACHESHAPE_H

#include "kvcache/IR/KVCache.h"

namespace mlir::kvcache {

/// The alignment in bytes of the blocks and the scales of a cache, and of all
/// strides between pages, layers and roles if the rows have it.
constexpr int64_t kPromisedAlignment = 16;

/// Returns the shape of a view, in stored elements, from which descriptors
/// derive their geometry.
tma::CacheShape getShape(CacheTypeInterface cache);

/// Returns the op that defines the collection of a view, or null if a block
/// argument or an unknown op defines it.
Operation *getCollectionOp(Value cache);

/// Returns the number of elements of which the strides 0 to 2 of the blocks or
/// scales of a collection must be multiples: `kPromisedAlignment` in elements,
/// or a smaller alignment if rows have only that.
int64_t getDistanceUnit(MemRefType tensor);

/// Returns the alignment in bytes, a power of two, of the first row of every
/// page of a view, or of its scales, from the alignment `ofTensor` of the
/// tensor and the static strides. It is at most `kPromisedAlignment` if a
/// stride is dynamic.
uint64_t getPageAlignment(Value view, bool ofScales, uint64_t ofTensor);

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

} // namespace mlir::kvcache

#endif // KVCACHE_IR_CACHESHAPE_H
