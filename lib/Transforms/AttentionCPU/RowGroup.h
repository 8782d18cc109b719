//===- RowGroup.h - Query heads of a token on a CPU -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWGROUP_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWGROUP_H

#include "HeadPieces.h"

namespace mlir::kvcache {

/// Tokens whose scores one vector has.
constexpr int64_t kTileTokens = 16;
/// Rows that share a head, at most, if they are few.
constexpr int64_t kFewRows = 8;

/// Some elements of a key or value, from `first` on, that are in one cache.
struct HeadField {
  Value cache;
  int64_t first, size;
  HeadPieces pieces;
};

/// Memory of few rows, `kFewRows` for each of `heads` heads.
struct FewRowsMemory {
  explicit FewRowsMemory(const HostAttention &attention);

  int64_t heads;
  /// Keys have the elements of the cache, and of `rope_cache` if there is one.
  SmallVector<HeadField, 2> keys;
  HeadField values;
  /// Queries times the factor, and accumulators of values, in the order of
  /// pieces: [rows, size]. With dot products, queries are pairs of bf16 without
  /// the factor: [rows, size / 2] of i32.
  Value queries, acc;
  /// The factors of scores, [rows]; null unless products are dot products.
  Value factors;
  /// [rows] each.
  Value rowMax, rowSum;
  /// Scales of the tokens of a tile, [tokens]; null without them.
  Value keyScales, valueScales;
  /// Encoded rows of a tile's columns, [32] of i32; null unless rows are
  /// sparse.
  Value ids;
  /// Products of the queries of a group with the keys of a tile, and then
  /// probs: [rows, tokens].
  Value scores;
  /// Probs rounded to pairs of bf16, [rows, tokens / 2] of i32; null unless
  /// products are dot products.
  Value probPairs;

  /// Whether products are dot products of pairs of bf16, not of f32.
  bool hasDots() const { return static_cast<bool>(factors); }
};

/// The tile of tokens from `first` on, for a head. Those before `from` are
/// copies of it, and those after `last` of that one, or any of their page if a
/// tile lies in one. So no page outside of `from` to `last` need exist.
struct HeadTile {
  Value head, first, from, last;
  /// The encoded row in place of negative ones; null unless rows are sparse.
  Value otherId;
};

/// Query heads of one token that are computed together, so that a key or value
/// in registers serves all of them.
struct RowGroup {
  const QueryRows &rows;
  /// The first row in memory, and itself.
  Value inMemory;
  HostAttention::Row first;
  /// Whether its head has no group before.
  Value isFirst;
  int64_t size;
};

/// The rows of a group: a divisor of the query heads of a head.
int64_t getGroupSize(const HostAttention &attention);

/// Whether a tile that begins at a multiple of its tokens lies in one page.
bool havePagesOfTiles(AttentionOp op);

/// The nearest of the tokens of a tile's rows, `from` to `last`.
Value getNearest(const Frame &frame, const HeadTile &tile, Value token);

/// The place of token `j` of a tile.
Place getPlace(const HostAttention &attention, const FewRowsMemory &memory,
               const QueryRows &rows, const HeadTile &tile, Value j);

/// Adds a tile to the sums of a group, if its rows see any of the tokens.
/// Prefetches the next tile for the first group of a head.
void addTile(const HostAttention &attention, const FewRowsMemory &memory,
             const RowGroup &group, const HeadTile &tile);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWGROUP_H
