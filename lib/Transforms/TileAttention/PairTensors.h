//===- PairTensors.h - Products of two thread blocks ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIRTENSORS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIRTENSORS_H

#include "../Builders/Frame.h"

#include "kvcache/IR/TensorMemoryOps.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::kvcache {

/// The products of a pair of blocks into the tensor memory of both: the scores
/// of a tile, and the accumulator. Lanes 0 to 63 have the rows of a block with
/// the tokens or values of block 0, and the others the same rows with those of
/// block 1. A thread of block 0 starts products, and all threads wait.
class PairTensors {
public:
  /// For tiles of so many tokens, and values of so many elements.
  PairTensors(const Frame &frame, int64_t tokens, int64_t values)
      : frame(frame), tokens(tokens), values(values) {}

  /// Allocates tensor memory, and synchronizes the pair. `rank` is the number
  /// of the block in it.
  void allocate(Value thread, Value rank);

  /// Synchronizes the threads of both blocks.
  void syncPair() const;
  /// Computes the scores of queries and keys.
  void multiplyRows(Value queries, Value keys) const;
  /// Adds the products of probs and values to the accumulator, or overwrites it
  /// with them.
  void addColumns(Value probs, Value valueTile, Value adds) const;

  TypedValue<TmemTileType> getScores() const { return getTile(0); }
  TypedValue<TmemTileType> getAcc() const { return getTile(1); }

  /// Runs `body` with the first of some columns of the accumulator, all in
  /// turn. They are the greatest common divisor of all and `most`.
  void forColumns(int64_t most,
                  function_ref<void(Value column, int64_t count)> body) const;

private:
  /// Runs `start` in one thread of the pair, and waits for its products.
  void run(bool parity, function_ref<void()> start) const;
  TypedValue<TmemTileType> getTile(unsigned number) const {
    return cast<TypedValue<TmemTileType>>(tiles[number]);
  }

  const Frame &frame;
  int64_t tokens, values;
  /// Whether the thread starts products.
  Value isIssuer;
  SmallVector<Value> tiles;
  TypedValue<nvgpu::MBarrierGroupType> barriers;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIRTENSORS_H
