//===- TileGrid.h - Which rows a block of tiles computes --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEGRID_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEGRID_H

#include "Attention.h"

namespace mlir::kvcache {

/// The rows of a block: its tile of those of a sequence, and, where they are
/// split, its part of the tokens.
struct TileWork {
  Value sequence, number;
  /// Null without a workspace.
  Value isWhole, part;
  /// If they are split, the slot of the sequence's row 0, or of the sparse row:
  /// a function of the block's number, which costs no register.
  Value slot;
};

/// The grid of attention on tensor cores: a block takes some tokens of a
/// sequence, for some heads of a group each.
class TileGrid : protected AttentionBase {
protected:
  /// For blocks of so many query rows.
  TileGrid(AttentionOp op, const Frame &frame, int64_t blockRows);

  /// Runs `body` in the threads of each block.
  void forTiles(int64_t threads, function_ref<void(const TileWork &)> body);

  /// Query heads of a token in a block, and tokens of a block.
  int64_t packed, perBlock;
  Value thread, firstHead;

private:
  /// The blocks of a layer of the grid, for each share of the heads.
  Value countBlocks();
  Value getFirstUnit(Value sequence);
  TileWork getWholeRows(Value unit);
  /// The first layer of the grid has whole rows, and the next ones have parts.
  TileWork getWork(Value number, Value layer, Value unit);

  /// Tiles of rows of a sequence that may be split.
  int64_t splitTiles;
  /// Sequences, blocks of whole rows, and blocks of a layer that have parts.
  Value batch, units, splitUnits;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEGRID_H
