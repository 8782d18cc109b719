//===- SwappedCores.h - Products of few query rows --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_SWAPPEDCORES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_SWAPPEDCORES_H

#include "LaneLayout.h"
#include "WarpgroupCores.h"

namespace mlir::kvcache {

/// The products of a warpgroup with swapped operands: keys times queries, and
/// values times weights, both transposed. A product of `wgmma` has 64 rows,
/// which are tokens or elements of values, and its columns are the query rows
/// of the block. Each warp has 16 tokens of each row, so maxima and weights go
/// through shared memory.
class SwappedCores {
public:
  SwappedCores(const Frame &frame, const TilePlan &plan, FloatType lane)
      : frame(frame), builder(frame.builder), loc(frame.loc), products(frame),
        layout(plan), rows(plan.rows), tokens(plan.tokens), type(lane) {}

  /// Allocates the tiles of weights and of what warps exchange.
  void allocate();
  void placeLane(Value thread);
  /// The number of a thread, so that compilers do not move computations
  /// with it out of a loop: registers would be missing there.
  Value hide(Value thread) const;

  /// The lane's first token, or element of a value, of each 64, and its first
  /// query row.
  Value getColumn() const { return column; }
  Value getFirstRow() const { return firstRow; }

  /// The lane's scores of the query rows of a tile, and of the tokens of
  /// another one. `meanwhile` emits what threads do while these are computed.
  SmallVector<Value> multiplyRows(Value queries, Value keys,
                                  function_ref<void()> meanwhile) const {
    return products.multiplyRows(keys, frame.index(0), queries, meanwhile);
  }

  /// Reduces a value of each row of the lane, which it has alike in the lanes
  /// of its warp that share the row, over the warps. After it, all threads
  /// have waited for the products before.
  SmallVector<Value>
  reduceRows(ArrayRef<Value> values,
             function_ref<Value(Value, Value)> combine) const;

  /// Stores the weights of a tile, for products after it.
  void storeWeights(ArrayRef<Value> weights) const;

  /// The sums plus the products of the weights and the columns of a tile.
  SmallVector<Value> addColumns(Value values, ArrayRef<Value> sums) const;

private:
  static constexpr int64_t kLanes = 32,
                           kWarps = WarpgroupCores::kThreads / kLanes;

  /// The first of the two query rows that the lane has of each 8.
  Value getRow(int64_t row) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  WarpgroupCores products;
  LaneLayout layout;
  int64_t rows, tokens;
  FloatType type;
  Value lane, warp, column, firstRow;
  /// A row of weights for each token, and a row of values for each warp.
  Value weightTile, warpTile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_SWAPPEDCORES_H
