//===- CacheShape.h - What is known of a cache's shape ----------*- C++ -*-===//
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

/// The bytes that the blocks and the scales of a cache start at a multiple of,
/// and that all distances in them are a multiple of if the rows are.
constexpr int64_t kPromisedAlignment = 16;

/// The shape of a view for the geometry of its descriptors, in stored elements.
tma::CacheShape getShape(CacheTypeInterface cache);

/// The op that bundled the tensors behind a view or a collection; null where it
/// is not in sight.
Operation *getCollectionOp(Value cache);

/// The elements that the strides 0 to 2 of a collection's blocks or scales are
/// promised to be a multiple of: `kPromisedAlignment`, or what rows are.
int64_t getDistanceUnit(MemRefType tensor);

/// The alignment in bytes, a power of two, of the first row of every page of a
/// view, or of every page of its scales, given that of the tensor: as the
/// strides say, and `kPromisedAlignment` at most where they are open.
uint64_t getPageAlignment(Value view, bool ofScales, uint64_t ofTensor);

/// Whether the distance between the pages of a view is a multiple of a row, so
/// that rows can be counted through all pages; none where it is open.
std::optional<bool> arePagesWholeRowsApart(Value view);

} // namespace mlir::kvcache

#endif // KVCACHE_IR_CACHESHAPE_H
