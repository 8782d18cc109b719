//===- KVCacheToNVVM.h - Lower tensor copies to NVVM ------------*- C++ -*-===//
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

/// Lowers the ops of `TMAOps.td` for the chip of their module. With `mayLoop`
/// many copies become an `scf.for`.
void populateKVCacheToNVVMPatterns(RewritePatternSet &patterns,
                                   bool mayLoop = true);

/// Makes these ops, and the waits for stores, illegal.
void addTensorCopyLegality(ConversionTarget &target);

/// Whether the chip that `op`, of `TMAOps.td`, is compiled for has it: if not,
/// there is an error that says which do.
LogicalResult checkTensorCopy(Operation *op);

} // namespace mlir::kvcache

#endif // KVCACHE_CONVERSION_KVCACHETONVVM_H
