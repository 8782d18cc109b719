//===- TensorProducts.h - Products of tiles into tensor memory --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TENSORPRODUCTS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TENSORPRODUCTS_H

#include "../PlanAttention/TileSizes.h"

#include "kvcache/IR/TensorMemoryOps.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mlir::kvcache {

/// Waits for products that a thread has started, whose commit completes a phase
/// of the only barrier.
void waitForProducts(const Frame &frame, Value barriers, bool parity);
/// Runs `body` with the first of some columns of an accumulator of so many, all
/// in turn. They are the greatest common divisor of all and `most`. Not
/// unrolled, because an iteration waits for its accesses.
void forAccColumns(const Frame &frame, int64_t columns, int64_t most,
                   function_ref<void(Value column, int64_t count)> body);

/// The products of a block into tensor memory: the scores of a tile, and the
/// accumulator, to which probs in tensor memory add values. One thread starts
/// them, and all threads wait.
class TensorProducts {
public:
  /// For tiles of so many tokens, values of so many elements, and probs of a
  /// type.
  TensorProducts(const Frame &frame, int64_t rows, int64_t tokens,
                 int64_t values, FloatType prob)
      : frame(frame), rows(rows), tokens(tokens), values(values), prob(prob) {}

  /// Allocates tensor memory. Before products, the threads have to meet.
  void allocate(Value thread);

  /// Computes the scores of queries and keys. Runs `meanwhile` before it waits.
  void multiplyRows(Value queries, Value keys,
                    function_ref<void()> meanwhile) const;
  /// Synchronizes the threads, which have stored probs. Adds their products
  /// with values to the accumulator, or overwrites it with them.
  void addColumns(Value values, Value adds) const;

  TypedValue<TmemTileType> getScores() const { return getTile(0); }
  TypedValue<TmemTileType> getProbs() const { return getTile(1); }
  TypedValue<TmemTileType> getAcc() const { return getTile(2); }

  /// Runs `body` with the first of some columns of the accumulator, all in
  /// turn, as `forAccColumns` does.
  void forColumns(int64_t most,
                  function_ref<void(Value column, int64_t count)> body) const {
    forAccColumns(frame, values, most, body);
  }

private:
  /// Runs `start` in one thread.
  void issue(function_ref<void()> start) const;
  /// Waits for what it has started.
  void wait(bool parity) const;
  TypedValue<TmemTileType> getTile(unsigned number) const {
    return cast<TypedValue<TmemTileType>>(tiles[number]);
  }

  Frame frame;
  int64_t rows, tokens, values;
  FloatType prob;
  /// Whether the thread starts products.
  Value isIssuer;
  SmallVector<Value> tiles;
  TypedValue<nvgpu::MBarrierGroupType> barriers;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TENSORPRODUCTS_H
