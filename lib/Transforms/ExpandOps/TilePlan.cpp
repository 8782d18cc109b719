//===- TilePlan.cpp - Tiles of a block of attention -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TilePlan.h"

#include "WarpgroupCores.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Bytes of tiles that every chip from sm_80 on has room for.
constexpr int64_t kMostOfTiles = 96 << 10;
/// Bytes of shared memory beside tiles of keys, values and queries: barriers,
/// ids of sparse rows, and what aligns tiles.
constexpr int64_t kBesideTiles = 4 << 10;
/// Elements of a value of which a warp keeps the sums.
constexpr int64_t kMostOfSums = 256;
/// Rows of a block up to which two warps share 16 rows if these are split.
constexpr int64_t kMostRowsMerged = 64;

static int64_t getSizeOf(Value rows, unsigned position) {
  return cast<ShapedType>(rows.getType()).getDimSize(position);
}

/// The bytes of queries, and of two tiles of keys and two of values. Those of a
/// latent cache are both.
static int64_t countBytes(AttentionOp op, int64_t rows, int64_t tokens) {
  int64_t ofKey = getSizeOf(op.getQ(), 2);
  int64_t elements =
      ofKey + (op.getValueCache() ? getSizeOf(op.getOut(), 2) : 0);
  return 2 * (rows * ofKey + 2 * tokens * elements);
}

/// Tokens of a tile for `mma.sync`, and with values of their own also for
/// wgmma: the sums of long values leave registers for few scores.
static int64_t countTokens(AttentionOp op) {
  int64_t size = std::max(getSizeOf(op.getQ(), 2), getSizeOf(op.getOut(), 2));
  return size <= 128 ? 64 : size <= 256 ? 32 : 16;
}

static TilePlan planWarps(AttentionOp op, int64_t rows) {
  int64_t ofValue = getSizeOf(op.getOut(), 2), tokens = countTokens(op);
  int64_t stages = countBytes(op, rows, tokens) <= kMostOfTiles ? 2 : 1;
  // Merging takes registers, too.
  bool isMerged = op.getWorkspace() && rows <= kMostRowsMerged;
  int64_t parts = ofValue > (isMerged ? kMostOfSums / 2 : kMostOfSums) ? 2 : 1;
  return {rows, tokens, stages, parts, /*byWarpgroups=*/false};
}

static TilePlan planWarpgroups(AttentionOp op, const Target &target,
                               int64_t rows) {
  auto fits = [&](int64_t tokens) {
    return countBytes(op, rows, tokens) <= target.sharedBytes - kBesideTiles;
  };
  int64_t tokens = countTokens(op), parts = 1;
  if (!op.getValueCache()) {
    rows = WarpgroupCores::kRows;
    tokens = 64;
    parts = getSizeOf(op.getOut(), 2) > kMostOfSums ? 2 : 1;
  }
  while (tokens > 16 && !fits(tokens))
    tokens /= 2;
  return {rows, tokens, /*stages=*/2, parts, /*byWarpgroups=*/true};
}

/// Whether warpgroups can and should multiply tiles of latent rows: a token has
/// enough query heads for all of their rows.
static bool hasLatentRowsForWarpgroups(AttentionOp op) {
  if (op.getTileRows())
    return false;
  auto cache = cast<CacheTypeInterface>(op.getKeyCache().getType());
  int64_t group = getSizeOf(op.getQ(), 1) / cache.getNumHeads();
  // Each of two warpgroups takes half of a long value, from a span of the
  // swizzle on.
  constexpr int64_t span = 64;
  int64_t size = getSizeOf(op.getOut(), 2);
  return group % WarpgroupCores::kRows == 0 &&
         (size <= kMostOfSums || size % (2 * span) == 0);
}

TilePlan TilePlan::get(AttentionOp op, const Target &target, int64_t rows) {
  bool isForWarpgroups = op.getValueCache() ? rows % WarpgroupCores::kRows == 0
                                            : hasLatentRowsForWarpgroups(op);
  return target.has(Feature::WGMMA) && isForWarpgroups
             ? planWarpgroups(op, target, rows)
             : planWarps(op, rows);
}
