//===- KVCacheToNVVM.h - Instructions of new chips --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_CONVERSION_KVCACHETONVVM_H
#define KVCACHE_CONVERSION_KVCACHETONVVM_H

#include "mlir/IR/PatternMatch.h"

namespace mlir {
class ConversionTarget;
} // namespace mlir

namespace mlir::kvcache {

/// Adds the patterns that lower the ops of `TMAOps.td`, `MatrixOps.td` and
/// `TensorMemoryOps.td`, and those of clusters, for the chip of their module.
/// With `mayLoop`, a large number of copies becomes an `scf.for`, and
/// `tmem_alloc`, which needs an `scf.if`, is lowered as well.
void populateKVCacheToNVVMPatterns(RewritePatternSet &patterns,
                                   bool mayLoop = true);

/// Marks these ops, and waits for stores, illegal.
void addKVCacheToNVVMLegality(ConversionTarget &target);

/// Checks that the target chip of `op`, an op of `TMAOps.td`, supports it.
/// Otherwise emits an error that names the required chips.
LogicalResult checkTensorCopy(Operation *op);

/// Checks the same of an op of `MatrixOps.td`, and the constants that say where
/// matrices begin in their tiles.
LogicalResult checkMatrixProduct(Operation *op);

/// Checks the same of an op of `TensorMemoryOps.td`.
LogicalResult checkTensorMemory(Operation *op);

/// Checks the same of `cluster_barrier` and `cluster_load`, and that all
/// barriers of a kernel state the same clusters.
LogicalResult checkCluster(Operation *op);

} // namespace mlir::kvcache

#endif // KVCACHE_CONVERSION_KVCACHETONVVM_H
