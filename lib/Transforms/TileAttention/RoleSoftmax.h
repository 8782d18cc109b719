//===- RoleSoftmax.h - The softmax of one of two query tiles ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLESOFTMAX_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLESOFTMAX_H

#include "OnlineSoftmax.h"
#include "RoleTensors.h"
#include "TileScores.h"

namespace mlir::kvcache {

/// The role of a warpgroup that computes the softmax of a query tile, a row in
/// each thread. It also scales the accumulator, where the largest score grows
/// much: that is rare, so warps of their own would wait, and take registers.
class RoleSoftmax {
public:
  /// For `tiles` tiles of keys. `number` is that of the query tile, and `lane`
  /// that of the thread in its warp.
  RoleSoftmax(const TileRows &block, FragmentBuilder &b,
              const RoleTensors &tensors, Value tiles, Value number,
              Value lane);

  /// Emits the loop over tiles, and stores the results.
  void emit() const;

private:
  void addTile(Value tile, SoftmaxState &state) const;
  /// Scales the accumulator if a row of the warp grows. There are tiles before
  /// this one.
  void rescale(const LazyProbs &added, Value tile) const;
  /// Stores the columns of the accumulator, which is 0 without tiles.
  void storeRows(const SoftmaxState &state) const;
  /// Runs `body` with the first of some columns of the accumulator, all in
  /// turn.
  void forColumns(int64_t count, function_ref<void(Value column)> body) const;
  FragmentType getFragment(int64_t columns) const;

  const TileRows &block;
  const Frame &frame;
  FragmentBuilder &b;
  const RoleTensors &tensors;
  Value tiles, number, lane, firstRow;
  TileScores scores;
  OnlineSoftmax softmax;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLESOFTMAX_H
