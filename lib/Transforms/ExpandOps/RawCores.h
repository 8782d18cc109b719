//===- RawCores.h - Products of elements of 8 bits --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_RAWCORES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_RAWCORES_H

#include "QueryTile.h"
#include "TileParts.h"
#include "TileScales.h"

namespace mlir::kvcache {

/// Products of a warp with raw tiles, whose elements of 8 bits become f16 in
/// registers: that is exact. `ldmatrix` gives a lane four bytes at once.
///
/// Of keys, these are four elements of a token, which are columns 2i, 2i + 1,
/// 2i + 8 and 2i + 9 of an operand: the queries have the same order. Of values,
/// they are two elements of two tokens each. Even and odd elements have
/// products of their own, so that a lane has the sums of four beside each
/// other.
///
/// A product has the elements of one group, whose scales are multiplied by its
/// scores, or by the weights before it. The state of a lane ends with the
/// units and changes of the scales of values: `TileScales`.
class RawCores {
public:
  RawCores(const Frame &frame, AttentionOp op, const TilePlan &plan,
           const TiledCache &keys, const TiledCache &values);

  /// Whether there are scales in shared memory, and of values.
  bool hasScales() const {
    return keyScales.countGroups() || valueScales.countGroups();
  }
  bool hasUnits() const { return valueScales.countUnits(); }

  void allocate();
  /// The lane's first token of each 8, and the first element of its warp's
  /// sums.
  void placeLane(const TensorCores &cores, Value thread, Value firstColumn,
                 Value firstOfSums);

  /// Appends the first units and changes to a state.
  void beginUnits(TileState &state) const;
  /// Gives sums their scales, and removes units and changes.
  void endUnits(TileState &state) const;

  /// Loads the scales of a tile, as `TileScales` does, and stores those that
  /// have been loaded last.
  void loadScales(Value tile, Value token, const TiledTokens &tokens,
                  Value condition);
  void storeScales(TileState &state) const;

  /// The scores of a tile for queries from `firstRow` on.
  TileState multiplyRows(const QueryTile &queries, Value firstRow,
                         Value keyTile, Value number) const;
  /// Multiplies the sums of a row by a number, with the changes of units.
  void shrinkSums(TileState &state, int64_t row, Value shrink) const;
  /// Adds the products of weights and values to the sums.
  void addColumns(ArrayRef<Value> weights, Value valueTile, Value number,
                  TileState &state) const;

private:
  /// Two pairs of f16, of the bytes of a word in their order, or even and odd
  /// ones.
  std::array<Value, 2> widen(Value word, Type element, bool byParity) const;
  Value permute(Value low, Value high, uint32_t selector) const;
  void accumulate(MutableArrayRef<Value> sums, const Fragment &a, Value b0,
                  Value b1) const;
  /// The weights of a group as left operands, 16 tokens each.
  SmallVector<Fragment> packWeights(ArrayRef<Value> weights, Value number,
                                    int64_t group) const;
  /// The scales of a group, of the lane's two tokens of each 8.
  std::pair<Value, Value> getScales(const TileScales &scales, Value number,
                                    int64_t group, int64_t run) const;

  MutableArrayRef<Value> getSums(TileState &state) const;
  MutableArrayRef<Value> getUnits(TileState &state) const;
  /// Multiplies the sums of a group of elements of a row.
  void scaleSums(TileState &state, int64_t row, int64_t group,
                 Value factor) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  const TiledCache &keys, &values;
  LaneLayout ofScores, ofSums;
  int64_t keySize, partSize, tokens;
  TileScales keyScales, valueScales;
  std::optional<TensorCores> cores;
  Value thread, column, firstSum;
  std::function<void(MutableArrayRef<Value>)> storeKeyScales, storeValueScales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_RAWCORES_H
