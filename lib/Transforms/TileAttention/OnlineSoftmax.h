//===- OnlineSoftmax.h - The softmax of tiles of scores ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ONLINESOFTMAX_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ONLINESOFTMAX_H

#include "../Builders/DeviceMath.h"
#include "FragmentBuilder.h"

namespace mlir::kvcache {

/// The values that a loop over tiles carries: the largest score of each row,
/// the lanes' shares of its sum of probs, and what the products carry. This is
/// the accumulator, or nothing if it is in tensor memory.
struct SoftmaxState {
  Value rowMax, rowSum;
  SmallVector<Value> products;

  explicit SoftmaxState(ValueRange values)
      : rowMax(values[0]), rowSum(values[1]), products(values.drop_front(2)) {}
  SmallVector<Value> getValues() const {
    SmallVector<Value> values{rowMax, rowSum};
    llvm::append_range(values, products);
    return values;
  }
  /// The accumulator, if it is in registers.
  Value &getAcc() { return products.front(); }
};

/// The probs of a tile, and the factor of the accumulator of each row.
struct TileProbs {
  Value probs, rescale;
};
/// Likewise. Where no row of a warp grows, the factors are 1.
struct LazyProbs {
  Value probs, rescale, grows;
};

/// The softmax of rows, a tile after the other, in base 2.
class OnlineSoftmax {
public:
  /// Exponents are scores times `factor`, a number of each row, or scores if it
  /// is null. Probs are 2 to the power of the difference to the largest
  /// exponent, plus `bias`. Warps that share rows exchange their maxima and
  /// sums through `scratch`. With `hasPolynomials`, a share of the powers are
  /// polynomials. If threads have parts of rows that fragments do not show,
  /// `join` combines their numbers of each row.
  using Join = std::function<Value(Reduction kind, Value rows)>;
  OnlineSoftmax(FragmentBuilder &b, const DeviceMath &f, Value factor,
                float bias, Value scratch = {}, bool hasPolynomials = false,
                Join join = {})
      : b(b), f(f), factor(factor), bias(bias), scratch(scratch),
        hasPolynomials(hasPolynomials), join(std::move(join)) {}

  /// Runs a function for each of `tiles` tiles, in a loop of a schedule. It
  /// changes the values that the loop carries. Returns those after the last
  /// tile.
  SmallVector<Value> forTiles(
      ValueRange first, Value tiles, Schedule schedule,
      function_ref<void(Value tile, SmallVector<Value> &values)> body) const;
  /// Likewise with a state.
  using AddTile = function_ref<void(Value tile, SoftmaxState &)>;
  SoftmaxState forTiles(const SoftmaxState &first, Value tiles,
                        Schedule schedule, AddTile addTile) const;
  /// Returns the state before the first tile, with an accumulator in registers.
  SoftmaxState begin(FragmentType acc) const;
  /// Returns the state before the first tile, for the rows of a fragment.
  SoftmaxState beginRows(FragmentType fragment) const;
  /// Adds the scores of a tile: updates the largest score and the sum, and
  /// rescales the accumulator. Returns what `use` makes of the probs.
  Value addScores(Value scores, SoftmaxState &state,
                  function_ref<Value(Value probs)> use) const;
  /// Likewise, but leaves the probs and the accumulator to the caller.
  TileProbs addRows(Value scores, SoftmaxState &state) const;
  /// Makes probs relative to a largest score that is no less than before, and
  /// returns the factor of the accumulator of each row.
  Value raiseMax(Value max, SoftmaxState &state) const;
  /// Adds the scores of a tile, but leaves the accumulator to the caller. The
  /// exponent that probs are relative to stays where it grows by at most
  /// `slack`.
  LazyProbs addScoresLazily(Value scores, float slack,
                            SoftmaxState &state) const;

  /// The exponent of each row that its sum of probs is relative to.
  Value getReference(const SoftmaxState &state) const;
  /// The sum of the probs of each row, in all lanes.
  Value getRowSum(const SoftmaxState &state) const;

private:
  Value findMax(Value scores, const SoftmaxState &state) const;
  Value computeProbs(Value scores, Value max) const;
  /// The prob of an exponent, whose column is given if that matters.
  Value computeProb(Value exponent, Value column) const;
  /// The factor of `rowSum` and `acc` where the largest score becomes another.
  Value computeRescale(Value before, Value max) const;
  void addProbs(Value probs, Value rescale, Value max,
                SoftmaxState &state) const;
  /// The score times the factor, which is no less than the least number.
  Value toExponent(ValueRange scoreAndFactor) const;
  /// Operands of a map: a fragment, and the factor if there is one.
  SmallVector<Value> withFactor(ArrayRef<Value> fragments) const;

  FragmentBuilder &b;
  DeviceMath f;
  Value factor;
  float bias;
  Value scratch;
  bool hasPolynomials;
  Join join;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ONLINESOFTMAX_H
