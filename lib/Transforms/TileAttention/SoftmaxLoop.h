//===- SoftmaxLoop.h - The loop of a block over its tiles -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SOFTMAXLOOP_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SOFTMAXLOOP_H

#include "FragmentResults.h"
#include "OnlineSoftmax.h"
#include "TileScores.h"
#include "TileSource.h"

namespace mlir::kvcache {

/// The products of a kind of MMA, which decides where probs and the
/// accumulator are.
struct ProductSteps {
  /// Computes the products of queries and a tile of keys.
  std::function<Value(Value keyTile, Value tile)> multiplyKeys;
  /// Adds the scores of a tile to the softmax. Returns their probs as an
  /// operand of the next product, or null if they are in memory.
  std::function<Value(Value scores, Value tile, SoftmaxState &state)> addScores;
  /// Adds the products of probs and a tile of values.
  std::function<void(Value probs, Value valueTile, Value tile,
                     SoftmaxState &state)>
      addValues;
  /// Runs before products become scores.
  std::function<void()> beforeScores = [] {};
  /// Loads numbers of the next tile before the products of this one, and
  /// returns what stores them after its scores are added.
  using Store = std::function<void(SoftmaxState &state)>;
  std::function<Store(Value tile)> loadNext = [](Value) {
    return [](SoftmaxState &) {};
  };
};

/// The loop of a block over tiles: scores, their softmax, and the product of
/// probs and values.
class SoftmaxLoop {
public:
  /// Products are fragments whose scores `scores` computes. `bias` and
  /// `scratch` are those of the softmax.
  SoftmaxLoop(FragmentBuilder &b, const TileRows &block, TileSource &source,
              const TileScores &scores, float bias, Value scratch = {})
      : block(block), source(source), bias(bias), scores(scores),
        softmax(b, DeviceMath(block.getFrame()), scores.getFactor(), bias,
                scratch) {}

  const OnlineSoftmax &getSoftmax() const { return softmax; }
  /// Returns the sums of the block's rows over `tiles` tiles, from a state
  /// before the first one. What products carry is in place of accumulators.
  RowStates run(const SoftmaxState &first, Value tiles,
                const ProductSteps &steps) const;

private:
  Value addScores(Value products, Value tile, Value token,
                  const ProductSteps &steps, SoftmaxState &state) const;
  /// Adds a tile of keys and one of values, whose first token is given.
  void addPair(Value tile, Value token, const ProductSteps &steps,
               SoftmaxState &state) const;
  /// Adds a tile whose rows are keys and values.
  void addLatent(Value tile, Value token, const ProductSteps &steps,
                 SoftmaxState &state) const;

  const TileRows &block;
  TileSource &source;
  float bias;
  TileScores scores;
  OnlineSoftmax softmax;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SOFTMAXLOOP_H
