//===- TileRows.h - The rows of a block, and their tokens -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEROWS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEROWS_H

#include "../Attention/BlockTokens.h"
#include "../Attention/SeenRanges.h"
#include "TileGrid.h"
#include "TileList.h"
#include "TileShape.h"

namespace mlir::kvcache {

/// The rows of a block of tiles, and the tokens that they see.
class TileRows {
public:
  explicit TileRows(const TileGrid &grid);

  AttentionOp getOp() const { return grid.op; }
  const Frame &getFrame() const { return grid.frame; }
  const AttentionConfig &getConfig() const { return grid.config; }
  const AttentionSizes &getSizes() const { return grid.sizes; }

  /// Begins the work of a block: finds its sequence, and the first of its rows.
  void begin(const TileWork &next);
  /// Finds the rows of the work.
  void findRows();
  /// Gives a block after the last row of a sequence no rows.
  void clampRows();
  /// The token and the query head of a row of the block. Those after the last
  /// repeat its token.
  std::pair<Value, Value> getRow(Value rowOfBlock) const;

  /// Finds the tokens that rows of the block see; then their tiles: returns
  /// how many there are. All `threads` of the block call it.
  void findTokens();
  Value findTiles(int64_t threads);
  /// The first token of a tile.
  Value getToken(Value tile) const;
  /// The tokens of a tile.
  TileTokens getTokens(Value tile) const {
    return {tile, getToken(tile), tokens};
  }
  std::function<void()> loadIds(Value tile) const;

  const TileGrid &grid;
  /// Given with sparse rows.
  std::optional<TileIds> ids;
  /// The ranges that rows see, and with gaps the tiles in them.
  SeenRanges ranges;
  std::optional<TileList> list;
  /// The work of the block.
  TileWork work;
  /// The sequence, and the block's first row and number of rows in it.
  QueryRows rows;
  Value first, count;
  /// Tokens of tiles, those that all rows see by position, and those that the
  /// region `mask` admits for all rows.
  TiledTokens tokens;
  TokenRange seenByAll, admittedForAll;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEROWS_H
