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
#include "BlockRows.h"
#include "TileList.h"
#include "TileShape.h"

namespace mlir::kvcache {

/// The rows of a block of tiles, and the tokens that they see.
class TileRows {
public:
  explicit TileRows(const KernelContext &kernel);

  AttentionOp getOp() const { return kernel.getOp(); }
  const Frame &getFrame() const { return kernel.frame; }
  const AttentionConfig &getConfig() const { return kernel.config; }
  const AttentionSizes &getSizes() const { return kernel.sizes; }

  /// Sets the rows of a work item, and the tokens that it computes with.
  void place(const BlockRows &rows, const SeenTokens &seen);
  /// The token and the query head of a row of the block. Those after the last
  /// repeat its token.
  std::pair<Value, Value> getRow(Value rowOfBlock) const;

  /// Finds the tiles of the tokens: returns how many there are. All `threads`
  /// of the block call it.
  Value findTiles(int64_t threads);
  /// The first token of a tile.
  Value getToken(Value tile) const;
  /// The tokens of a tile.
  TileTokens getTokens(Value tile) const {
    return {tile, getToken(tile), tokens};
  }
  std::function<void()> loadIds(Value tile) const;

  const KernelContext &kernel;
  /// Given with sparse rows.
  std::optional<TileIds> ids;
  /// The ranges that rows see, and with gaps the tiles in them.
  SeenRanges ranges;
  std::optional<TileList> list;
  BlockRows rows;
  SeenTokens seen;
  /// The tokens of the tiles.
  TiledTokens tokens;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEROWS_H
