//===- TileSizes.h - Numbers that follow from a config ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILESIZES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILESIZES_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Query rows of a warp on tensor cores: those of a product.
constexpr int64_t kRowsOfWarp = 16;
/// Threads of a warpgroup, and the rows of its products.
constexpr int64_t kWarpgroup = 128, kRowsOfWarpgroup = 64;

/// Query rows of a block with roles: two query tiles.
constexpr int64_t kRowsOfRoles = 256;
/// Blocks of a cluster that multiply together.
constexpr int64_t kBlocksOfPair = 2;

/// Tiles of a block that its list may leave out, and the numbers of the list:
/// those of the tiles, and its length.
constexpr int64_t kListedTiles = 1024, kListNumbers = kListedTiles + 4;
/// Tiles whose scales of groups are in shared memory: the tile in use, and the
/// next one.
constexpr int64_t kScaledTiles = 2;

// Numbers and properties of a kernel with tensor cores that follow from its
// config, which is complete.

/// Whether the left operands of products are the keys and values of 64 tokens,
/// in a warpgroup: query rows are columns of the products.
bool isSwapAB(const AttentionConfig &config);
/// Whether warps convert elements of 8 bits in registers, to f16: tiles are as
/// the caches have them.
bool dequantizesInRegisters(const AttentionConfig &config);
/// Whether warps of their own copy tiles, because products overlap the softmax.
bool hasProducers(const AttentionConfig &config);
/// Whether a warp starts the products of two query tiles in tensor memory, and
/// a warpgroup for each has a row in each thread.
bool hasRoles(const AttentionConfig &config);
/// Whether both blocks of a cluster multiply together.
bool isPair(const AttentionConfig &config);
/// Whether a block takes work items until there are none.
bool isPersistent(const AttentionConfig &config);

/// Whether the blocks of a cluster merge their splits.
bool mergesInCluster(const AttentionConfig &config);

/// Threads of a block that multiply, or compute the softmax.
int64_t countThreads(const AttentionConfig &config);
/// Warps that do nothing but copy tiles; 0 where all do.
int64_t countProducerWarps(const AttentionConfig &config);
/// Tiles whose copies are under way while one is used, at most.
int64_t countAhead(const AttentionConfig &config);
/// How long lines of the cache stay in the L2 cache; null without a hint.
EvictionAttr getHint(MLIRContext *context, const AttentionConfig &config);

/// Columns of the tile in which a block keeps a split of its rows, for others
/// of its cluster: the accumulator, and the state of the row in a margin. It
/// spreads the rows of a store over the banks.
int64_t countSplitColumns(int64_t valueSize);

/// The number of tokens that the first token of a tile in a page is a multiple
/// of, if it is that of a tile.
int64_t getTileAlignment(AttentionOp op, int64_t tokens);
/// Whether copies of such tiles have many rows each. Copies of few rows need
/// more registers.
bool hasLongBoxes(AttentionOp op, int64_t tokens);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILESIZES_H
