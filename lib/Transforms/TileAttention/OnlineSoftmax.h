//===- OnlineSoftmax.h - The softmax of tiles of scores ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ONLINESOFTMAX_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ONLINESOFTMAX_H

#include "../ExpandOps/DeviceMath.h"
#include "FragmentBuilder.h"

namespace mlir::kvcache {

/// The fragments that a loop over tiles carries: the largest score of each row,
/// the lanes' shares of the sum of weights, and the accumulator.
struct SoftmaxState {
  Value max, sum, acc;

  explicit SoftmaxState(ValueRange values)
      : max(values[0]), sum(values[1]), acc(values[2]) {}
  SmallVector<Value> getValues() const { return {max, sum, acc}; }
};

/// The softmax of rows, a tile after the other, in base 2.
class OnlineSoftmax {
public:
  /// Exponents are scores times `factor`, a number of each row, or scores if it
  /// is null. Weights are 2 to the power of the difference to the largest
  /// exponent, plus `bias`.
  OnlineSoftmax(const DeviceMath &f, Value factor, float bias)
      : f(f), b(f.builder, f.loc), factor(factor), bias(bias) {}

  /// Runs `addTile` for each of `tiles` tiles, in a loop of a schedule. Returns
  /// the state after the last one.
  SoftmaxState
  forTiles(FragmentType acc, Value tiles, Schedule schedule,
           function_ref<void(Value tile, SoftmaxState &)> addTile) const;
  /// Adds the scores of a tile: returns their weights as a left operand,
  /// updates the largest score and the sum, and scales the accumulator.
  Value addScores(Value scores, FragmentType operand,
                  SoftmaxState &state) const;

  /// The exponent of each row that its sum of weights is relative to.
  Value getReference(const SoftmaxState &state) const;
  /// The sum of the weights of each row.
  Value getTotal(const SoftmaxState &state) const;

private:
  /// The state before the first tile.
  SoftmaxState begin(FragmentType acc) const;
  /// The score times the factor, which is no less than the least number.
  Value toExponent(ValueRange scoreAndFactor) const;
  /// Operands of a map: a fragment, and the factor if there is one.
  SmallVector<Value> withFactor(ArrayRef<Value> fragments) const;

  DeviceMath f;
  FragmentBuilder b;
  Value factor;
  float bias;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ONLINESOFTMAX_H
