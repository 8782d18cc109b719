//===- GreedyRewrite.h - Patterns until none applies ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TRANSFORMS_GREEDYREWRITE_H
#define KVCACHE_TRANSFORMS_GREEDYREWRITE_H

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kvcache {

/// How passes apply patterns. Blocks stay as they are: LLVM looks after them,
/// and to ask each time which of their arguments live takes a quarter of the
/// time of folding.
inline GreedyRewriteConfig getGreedyRewriteConfig() {
  return GreedyRewriteConfig().setRegionSimplificationLevel(
      GreedySimplifyRegionLevel::Disabled);
}

} // namespace mlir::kvcache

#endif // KVCACHE_TRANSFORMS_GREEDYREWRITE_H
