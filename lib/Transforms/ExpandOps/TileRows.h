//===- TileRows.h - The rows of a block, and their tokens -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEROWS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEROWS_H

#include "AttentionChoices.h"
#include "TileGrid.h"
#include "TileParts.h"
#include "TiledCache.h"

namespace mlir::kvcache {

/// The rows of a block of tiles, and the tokens that they see.
class TileRows : protected TileGrid {
protected:
  TileRows(AttentionOp op, const Frame &frame, const TilePlan &plan);

  /// Finds the sequence of a block, and the first of its rows; then its rows.
  void findSequence(const TileWork &work);
  void findRows(const TileWork &work);
  /// The token and the query head of a row of the block. Those behind the last
  /// repeat its token.
  std::pair<Value, Value> getRow(Value ofBlock);
  TileRow makeRow(Value ofBlock, Value factor);

  /// Finds the tiles of tokens that rows of the block see.
  void findTokens();
  Value getToken(Value tile);
  std::function<void()> loadIds(Value tile);

  /// Gives scores that rows do not see the weight 0, where there are any.
  TileState mask(const TileState &scores, Value tile);

  /// Given with sparse rows.
  std::optional<TileIds> ids;
  /// The sequence, and the block's first row and number of rows in it.
  QueryRows rows;
  Value first, count;
  TileLane ofLane;
  /// The lane's first column.
  Value column;
  /// Tokens of tiles, and those that all rows see.
  TiledTokens tokens;
  TokenRange seenByAll;

private:
  /// Gives the scores of ids that are no row's the weight 0.
  TileState maskIds(TileState scores, Value tile);
  TileState maskEach(const TileState &scores, Value token);
  bool hasBegin();
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEROWS_H
