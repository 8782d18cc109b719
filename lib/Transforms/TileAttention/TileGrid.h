//===- TileGrid.h - Which rows a block of tiles computes --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H

#include "../Attention/Attention.h"

namespace mlir::kvcache {

/// The rows of a block: its tile of those of a sequence, and, where they are
/// split, its part of the tokens.
struct TileWork {
  Value sequence, number;
  /// Null without a workspace.
  Value isWhole, part;
  /// If they are split, the slot of the sequence's row 0, or of the sparse row:
  /// without a schedule a function of the block's number, which costs no
  /// register.
  Value slot;
  /// With a schedule, what the block's work before has left; otherwise null.
  Value carried;
};

/// The tokens that rows of a block see: those that any of them sees, from where
/// tiles may begin on, and those that all see by position. The first tokens of
/// tiles are multiples of a number.
struct SeenTokens {
  TokenRange all, byAll;
  int64_t alignment = 1;
  /// The first token that any row sees, if tiles may begin before it;
  /// otherwise null.
  Value begin;
  /// Tokens that the region `mask` admits for all rows; null without it.
  TokenRange admitted;
};

/// The grid of attention on tensor cores: a block takes some tokens of a
/// sequence, for some heads of a group each.
class TileGrid : public AttentionBase {
public:
  TileGrid(AttentionOp op, const Frame &frame, const TilePlan &plan);

  /// Runs `body` in the threads of each block, with a schedule for each unit
  /// that it takes. `allocate` then runs once before these.
  void forTiles(int64_t threads, function_ref<void()> allocate,
                function_ref<void(const TileWork &)> body);

  /// With a schedule, the work of the unit that runs, as memory has it.
  TileWork findWorkAgain();

  /// The tokens that rows [first, first + count) of a sequence see. With
  /// `lane`, the lanes of a warp share the work.
  SeenTokens findSeen(const QueryRows &rows, Value first, Value count,
                      Value lane = {});
  Value countTokens(const TokenRange &tokens);
  /// The parts of a block's rows, from `first` on of those of a sequence.
  Value countParts(const QueryRows &rows, Value first);

  TilePlan plan;
  /// Query heads of a token in a block, and tokens of a block.
  int64_t packed, perBlock;
  Value thread, firstHead;

private:
  void forScheduledTiles(int64_t threads, function_ref<void()> allocate,
                         function_ref<void(const TileWork &)> body);
  /// The head of the caches, and the first query head, of a share of the heads.
  void setHeads(Value share);
  /// The blocks of a layer of the grid, for each share of the heads.
  Value countBlocks();
  Value getFirstUnit(Value sequence);
  TileWork getWholeRows(Value unit);
  /// The first layer of the grid has whole rows, and the next ones have parts.
  TileWork getWork(Value number, Value layer, Value unit);

  TileWork getScheduledWork(const ScheduledUnit &unit);
  /// An entry of the schedule: the whole rows of a sequence, which take longest
  /// and come first, or the parts of a tile of its rows.
  TileWork getEntry(Value entry);
  /// The units of an entry: tiles, or parts.
  Value countUnits(Value entry);

  /// Shares of the heads: blocks beside each other, which read the same pages.
  int64_t shares, across;
  /// Tiles of rows of a sequence that may be split.
  int64_t splitTiles;
  /// Sequences, blocks of whole rows, and blocks of a layer that have parts.
  Value batch, units, splitUnits;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEGRID_H
