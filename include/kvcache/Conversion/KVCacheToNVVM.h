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

namespace mlir::kvcache {

/// Lowers the ops of `TMAOps.td` for the chip of their module, which must have
/// them: `convert-kvcache-to-nvvm` asks first.
void populateKVCacheToNVVMPatterns(RewritePatternSet &patterns);

} // namespace mlir::kvcache

#endif // KVCACHE_CONVERSION_KVCACHETONVVM_H
