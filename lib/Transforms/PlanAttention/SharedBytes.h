//===- SharedBytes.h - Shared memory of tiles -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SHAREDBYTES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SHAREDBYTES_H

#include "AttentionShape.h"

namespace mlir::kvcache {

/// Tiles of a block that its list may leave out, and the numbers of the list:
/// those of the tiles, and its length.
constexpr int64_t kListedTiles = 1024, kListNumbers = kListedTiles + 4;
/// Tiles whose scales of groups are in shared memory: the tile in use, and the
/// next one.
constexpr int64_t kScaledTiles = 2;

/// The bytes of queries and tiles in shared memory. Those of latent rows are
/// keys and values.
int64_t countBytes(AttentionOp op, const AttentionShape &shape,
                   const TilePlan &plan);
/// The bytes of shared memory of a plan.
int64_t countSharedBytes(AttentionOp op, const AttentionShape &shape,
                         const TilePlan &plan);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SHAREDBYTES_H
