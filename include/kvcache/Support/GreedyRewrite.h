//===- GreedyRewrite.h - Configuration of greedy rewrites -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_GREEDYREWRITE_H
#define KVCACHE_SUPPORT_GREEDYREWRITE_H

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kvcache {

/// Returns the configuration with which passes apply patterns. It disables
/// region simplification: LLVM simplifies blocks anyway, and the liveness
/// analysis of block arguments takes a quarter of the time of folding.
inline GreedyRewriteConfig getGreedyRewriteConfig() {
  return GreedyRewriteConfig().setRegionSimplificationLevel(
      GreedySimplifyRegionLevel::Disabled);
}

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_GREEDYREWRITE_H
