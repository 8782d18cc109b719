//===- AttentionChoices.h - How blocks divide attention ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONCHOICES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONCHOICES_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/KVCacheDialect.h"

#include <algorithm>

namespace mlir::kvcache {

/// Query rows of a warp on tensor cores: those of a product.
constexpr int64_t kRowsOfWarp = 16;
/// Threads of a warpgroup, and the rows of its products.
constexpr int64_t kWarpgroup = 128, kRowsOfWarpgroup = 64;

/// How a block of attention on tensor cores divides its work: the fields of the
/// config, and what follows from them.
struct TilePlan {
  MmaKind mma;
  /// Query rows.
  int64_t rows;
  /// Tokens of a tile, and tiles of keys and of values that the block has.
  int64_t tokens, stages;
  /// Warps, or warpgroups, that share the accumulators of their rows.
  int64_t accShares;
  /// Loads of a thread that are under way at once, of elements that it
  /// converts.
  int64_t convertLoads;
  /// Tiles of such elements that copies bring; 0 where the threads load them.
  int64_t rawStages = 0;
  /// Blocks of a persistent kernel; 0 for a block for each work item.
  int64_t persistentBlocks = 0;
  /// Whether the left operands of products are the keys and values of 64
  /// tokens, in a warpgroup: query rows are columns of the products.
  bool swapAB = false;
  /// Whether warps convert elements of 8 bits in registers, to f16: tiles are
  /// as the caches have them.
  bool dequantizesInRegisters = false;
  /// The overlap of the products of a tile.
  Schedule schedule = Schedule::Prefetch;
  /// How long lines of the cache stay in the L2 cache; null without a hint.
  EvictionAttr hint = {};
  /// The most registers of a thread that multiplies by `mma.sync`; 0 for any.
  int64_t registers = 0;

  int64_t countThreads() const {
    return swapAB ? kWarpgroup : rows / kRowsOfWarp * accShares * kWarp;
  }
  bool isPersistent() const { return persistentBlocks != 0; }
  /// Warps that do nothing but copy tiles; 0 where all do.
  int64_t countProducerWarps() const {
    return schedule == Schedule::Prefetch ? 0 : kWarpgroup / kWarp;
  }
  /// Tiles whose copies are under way while one is used, at most.
  int64_t countAhead() const { return std::max(stages - 1, rawStages); }
};

/// How a warp divides its work without tensor cores.
struct WarpPlan {
  /// Lanes that share a token, and elements of a key and of a value that a lane
  /// loads at once. They differ only where bytes of one cache have more.
  int64_t lanes = 0, keyWidth = 0, valueWidth = 0;
  /// Query heads of a warp, and tokens of a lane whose loads are in flight.
  int64_t rows = 1, tokens = 4;
  /// As for tiles.
  EvictionAttr hint = {};
};

/// Plans the blocks of an op for kernels that run on all chips of a target;
/// nothing if warps compute it without tensor cores. Keeps the fields of
/// `config`, or emits an error that says which of them the target can't have.
FailureOr<std::optional<TilePlan>> planTiles(AttentionOp op,
                                             const Target &target);

/// The number of tokens that the first token of a tile in a page is a multiple
/// of, if it is that of a tile.
int64_t getTileAlignment(AttentionOp op, int64_t tokens);
/// Whether copies of such tiles have many rows each. Copies of few rows need
/// more registers.
bool hasLongBoxes(AttentionOp op, int64_t tokens);

/// Chooses the warps of an op without tensor cores.
WarpPlan chooseWarps(AttentionOp op);

/// Returns all fields of a config that has the plan.
AttentionConfig getConfig(const TilePlan &plan);
AttentionConfig getConfig(const WarpPlan &plan);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_ATTENTIONCHOICES_H
