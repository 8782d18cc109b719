//===- TensorSums.h - Products of tiles into tensor memory ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TENSORSUMS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TENSORSUMS_H

#include "TensorCores.h"
#include "TensorProducts.h"

namespace mlir::kvcache {

/// The scores, weights and sums of a block in tensor memory. One thread starts
/// the products of all rows, and all threads wait for them. A warp has 16 rows
/// of 64 or 128, and its lanes have the same shares of them as with
/// `TensorCores`: for each 8 columns an accumulator, for each 16 a fragment.
class TensorSums {
public:
  /// For tiles of so many tokens, and values of so many elements.
  TensorSums(const Frame &frame, int64_t rows, int64_t tokens, int64_t values,
             FloatType lane);

  /// Allocates tensor memory. Before products, the threads have to meet.
  void allocate(Value thread);

  /// The first row of a warp of a block.
  static Value getFirstRow(const Frame &frame, int64_t rows, Value warp);

  /// The lane's products of the rows of a tile, and those of another one. Runs
  /// `meanwhile` before it waits for them.
  SmallVector<Value> multiplyRows(Value queries, Value keys,
                                  function_ref<void()> meanwhile) const;

  /// Adds the products of weights and the columns of a tile, or overwrites the
  /// sums with them.
  void addColumns(ArrayRef<Fragment> weights, Value values, Value adds) const;

  /// Multiplies the sums of the lane's two rows, if a lane of the warp has the
  /// condition.
  void scale(ArrayRef<Value> factors, Value condition) const;

  /// Runs `body` with the first of some columns, and the lane's sums of them.
  /// The sums are 0 unless products have been added.
  void forColumns(Value hasProducts,
                  function_ref<void(Value column, ValueRange sums)> body) const;
  /// The number of these columns.
  int64_t getColumns() const;

private:
  Value load(Value column, int64_t count) const;
  void store(Value column, ValueRange sums) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  int64_t rows, tokens, values;
  FloatType lane;
  TensorProducts products;
  /// Which of the halves of 32 rows the warp of the thread has, or null.
  Value half;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TENSORSUMS_H
