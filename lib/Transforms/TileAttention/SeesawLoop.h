//===- SeesawLoop.h - The tiles of two warpgroups in turns ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWLOOP_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWLOOP_H

#include "FragmentResults.h"
#include "GroupExchange.h"
#include "OnlineSoftmax.h"
#include "SeesawTiles.h"
#include "TileScores.h"

namespace mlir::kvcache {

/// Adds the tiles of a block to the sums of two warpgroups. Warpgroup g
/// computes the scores and the probs of tiles g, g + 2, and so on. Its
/// accumulator has the products of all tiles with its half of the values.
///
/// A warpgroup begins a tile with its scores, which need nothing of the other
/// one. Then it takes a turn, in which the other has given the probs and the
/// largest scores of the tile before. While these are multiplied, it computes
/// its own probs, and gives them. So the softmax of a tile is that of all tiles
/// before it, and one warpgroup multiplies while the other one computes
/// exponentials.
class SeesawLoop {
public:
  /// The fragments of scores, of an accumulator, and of probs as an operand.
  struct Types {
    FragmentType score, acc, probs;
  };

  SeesawLoop(FragmentBuilder &b, const TileRows &block,
             const SeesawTiles &tiles, const GroupExchange &exchange,
             Value queryTile, const Types &types, const TileScores &scores,
             float bias)
      : b(b), block(block), frame(block.getFrame()), tiles(tiles),
        exchange(exchange), queryTile(queryTile), types(types), scores(scores),
        softmax(b, DeviceMath(frame), scores.getFactor(), bias), bias(bias) {}

  /// Returns the sums of the block's rows over `count` tiles.
  RowStates run(Value count) const;

private:
  /// Adds a tile of the warpgroup's own. Tile 0 has none before it.
  SmallVector<Value> addOwn(Value tile, bool isFirst, ValueRange carried) const;
  /// Computes the scores of a tile whose first products have started. The rope
  /// is one of its parts.
  Value finishScores(Value tile, Value rope, Value started) const;
  /// Adds the scores of a tile after those of the tile before, and returns the
  /// probs. Adds the products of the tile before meanwhile.
  Value addScores(Value tile, Value tileScores, Value rope, bool isFirst,
                  SoftmaxState &state) const;
  /// Gives the other warpgroup the probs of a tile, in place of its rope, and
  /// the largest scores. Returns the probs as an operand.
  Value giveProbs(Value probs, Value rope, const SoftmaxState &state) const;
  /// Frees the half that only the other warpgroup reads. All consumers must
  /// arrive.
  void freeUnread(Value tile) const;
  /// Takes the turn that has the other warpgroup's probs of a tile, and adds
  /// their products. Returns what `meanwhile` computes while these are in
  /// flight, of these types.
  using Meanwhile = function_ref<SmallVector<Value>(SoftmaxState &)>;
  SmallVector<Value> addOther(Value tile, SoftmaxState &state,
                              TypeRange moreTypes, Meanwhile meanwhile) const;
  /// Starts products of queries and columns of keys.
  Value startKeys(Value part, Value firstColumn, Value acc) const;
  /// Adds the other warpgroup's sum of the probs of each row.
  Value joinSums(const SoftmaxState &state) const;

  FragmentBuilder &b;
  const TileRows &block;
  const Frame &frame;
  const SeesawTiles &tiles;
  const GroupExchange &exchange;
  Value queryTile;
  Types types;
  const TileScores &scores;
  OnlineSoftmax softmax;
  float bias;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWLOOP_H
