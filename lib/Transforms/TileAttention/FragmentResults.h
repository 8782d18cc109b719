//===- FragmentResults.h - Results of rows in fragments ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTRESULTS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTRESULTS_H

#include "../Attention/RowNormalizer.h"
#include "FragmentBuilder.h"
#include "TileRows.h"

namespace mlir::kvcache {

/// The rows of a block after all tiles: accumulators, each of some elements of
/// values, and for each row the sum of its probs and the exponent that it is
/// relative to. The largest score is `bias` more.
struct RowStates {
  SmallVector<Value> accs;
  Value reference, rowSum;
  float bias;
};

/// Stores the results of rows of a block.
class FragmentResults {
public:
  /// Fragments have rows of the block from `firstRow` on. The only accumulator
  /// has elements of values from `firstColumn` on.
  FragmentResults(const TileRows &block, const FragmentBuilder &b,
                  Value firstRow, Value firstColumn)
      : block(block), frame(block.getFrame()), b(b),
        normalizer(frame, RowOperands::get(block.getOp())), firstRow(firstRow),
        firstColumn(firstColumn) {}

  /// Stores the outputs, the logarithms of the sums, and the largest scores.
  void storeOutputs(const RowStates &states) const;
  /// Stores a split of the rows into the workspace.
  void storeSplit(const RowStates &states, Value split) const;
  /// Stores a split of the rows into a tile, whose last columns have their
  /// states.
  void storeSplitTile(const RowStates &states, Value tile) const;

private:
  /// Where a row is stored: its number in the block and among those of the
  /// sequence, its query head, and whether it is there.
  struct RowPlace {
    Value blockRow, i, queryHead, isThere;
  };
  RowPlace getPlace(Value blockRow) const;

  /// Computes a number of each row from its state and its query head.
  using Compute = function_ref<Value(const RowState &scores, Value queryHead)>;
  Value mapRows(const RowStates &states, Compute compute) const;
  /// Stores a number of each row, of those that the memref has.
  void storeStatistic(Value fragment, Value memref) const;
  /// Gives the indices of a row, and whether it is stored.
  using Place = function_ref<SmallVector<Value>(const RowPlace &)>;
  /// Stores the elements of rows, or a number of each.
  void store(Value fragment, Value memref, IntegerAttr alignment,
             Place place) const;
  /// Fills the region of a store.
  void emitPlaces(Region &region, Place place) const;
  /// The alignment of runs of an accumulator in a memref.
  IntegerAttr getAlignment(Value acc, Value memref) const;
  /// Whether the fragments have the first elements of values, and a row is
  /// there.
  Value isFirst(Value isThere) const;

  const TileRows &block;
  const Frame &frame;
  const FragmentBuilder &b;
  RowNormalizer normalizer;
  Value firstRow, firstColumn;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_FRAGMENTRESULTS_H
