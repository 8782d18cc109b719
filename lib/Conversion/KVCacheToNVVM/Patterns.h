//===- Patterns.h - What the patterns share ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETONVVM_PATTERNS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETONVVM_PATTERNS_H

#include "kvcache/Conversion/KVCacheToNVVM.h"
#include "kvcache/Target/Chip.h"

namespace mlir::kvcache {

/// Returns the address of byte `offset` of a tile, before or after the lowering
/// of the tile to memory, as `!llvm.ptr<3>`.
Value getTileAddress(OpBuilder &builder, Location loc, Value tile,
                     Value offset);

/// Checks that the target chip of an op in GPU code has a feature.
LogicalResult checkFeature(Operation *op, Feature feature);

/// Returns the number of blocks of the clusters that a kernel states, by its
/// first `cluster_barrier` or by an attribute.
int64_t countClusterBlocks(Operation *op);

/// Adds the patterns that lower the ops of `TMAOps.td`.
void populateTensorCopyPatterns(RewritePatternSet &patterns, bool mayLoop);

/// Adds the patterns that lower the ops of `MatrixOps.td`.
void populateMatrixPatterns(RewritePatternSet &patterns);

/// Adds the patterns that lower `cluster_barrier` and `cluster_load`.
void populateClusterPatterns(RewritePatternSet &patterns);

/// Adds the patterns that lower the ops of `TensorMemoryOps.td`. Without
/// `mayBranch`, allocations stay.
void populateTensorMemoryPatterns(RewritePatternSet &patterns, bool mayBranch);
/// Adds those of them that multiply.
void populateTensorProductPatterns(RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETONVVM_PATTERNS_H
