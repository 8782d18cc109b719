//===- SoftmaxLoop.h - The loop of a block over its tiles -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SOFTMAXLOOP_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SOFTMAXLOOP_H

#include "OnlineSoftmax.h"
#include "TileFeed.h"
#include "TileScores.h"

namespace mlir::kvcache {

/// The products of a kind of MMA, which decides where weights and the
/// accumulator are.
struct ProductSteps {
  /// Computes the products of queries and a tile of keys.
  std::function<Value(Value keyTile, Value tile)> multiplyKeys;
  /// Adds the scores of a tile to the softmax, and keeps their weights.
  std::function<void(Value scores, Value tile, SoftmaxState &state)> addScores;
  /// Adds the products of these weights and a tile of values.
  std::function<void(Value valueTile, Value tile, SoftmaxState &state)>
      addValues;
  /// Runs before products become scores.
  std::function<void()> beforeScores = [] {};
};

/// The loop of a block over tiles that all of its threads bring: scores, their
/// softmax, and sums of values.
class SoftmaxLoop {
public:
  /// Products are fragments of `type`, whose row 0 is row `firstRow` of the
  /// block. `bias` and `scratch` are those of the softmax.
  SoftmaxLoop(const TileRows &block, TileFeed &feed, FragmentType type,
              Value firstRow, float bias, Value scratch = {})
      : block(block), feed(feed), type(type), bias(bias),
        scores(block, type, firstRow),
        softmax(DeviceMath(block.getFrame()), scores.getFactor(), bias,
                scratch) {}

  const OnlineSoftmax &getSoftmax() const { return softmax; }
  /// Returns the sums of the block's rows over `tiles` tiles, from a state
  /// before the first one.
  RowSums run(const SoftmaxState &first, Value tiles,
              const ProductSteps &steps) const;

private:
  void addScores(Value products, Value tile, Value token,
                 const ProductSteps &steps, SoftmaxState &state) const;
  /// Adds a tile of keys and one of values, whose first token is given.
  void addPair(Value tile, Value token, const ProductSteps &steps,
               SoftmaxState &state) const;
  /// Adds a tile whose rows are keys and values.
  void addLatent(Value tile, Value token, const ProductSteps &steps,
                 SoftmaxState &state) const;

  const TileRows &block;
  TileFeed &feed;
  FragmentType type;
  float bias;
  TileScores scores;
  OnlineSoftmax softmax;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SOFTMAXLOOP_H
