//===- TilePlan.h - Tiles of a block of attention ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPLAN_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPLAN_H

#include "Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// How a block of attention on tensor cores divides its work.
struct TilePlan {
  /// Query rows.
  int64_t rows;
  /// Tokens of a tile, and tiles of keys and of values that the block has.
  int64_t tokens, stages;
  /// Warps, or warpgroups, that share the sums of their rows.
  int64_t parts;
  /// Whether warpgroups multiply tiles; otherwise, warps multiply fragments.
  bool byWarpgroups;

  /// Plans a block of `rows` rows, for warpgroups where the chips have these
  /// and the rows are a multiple of 64. A block of latent rows gets 64 for
  /// that, if tokens have enough query heads.
  static TilePlan get(AttentionOp op, const Target &target, int64_t rows);
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEPLAN_H
