//===- WarpgroupCores.h - Products of tiles by warpgroups -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_WARPGROUPCORES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_WARPGROUPCORES_H

#include "TensorCores.h"

namespace mlir::kvcache {

/// Builds `kvcache.mma`. All threads of a warpgroup execute it. Each
/// of its warps has 16 of the 64 rows of a product, and its lanes have the same
/// shares of them as with `TensorCores`: for each 8 columns an accumulator, for
/// each 16 a fragment.
class WarpgroupCores {
public:
  /// Rows, and threads, of a product.
  static constexpr int64_t kRows = 64, kThreads = 128;

  explicit WarpgroupCores(const Frame &frame)
      : frame(frame), builder(frame.builder), loc(frame.loc) {}

  /// The products of 64 rows of a tile, from `firstRow` on, and all rows of
  /// another one. `meanwhile` emits what threads do while these are computed.
  SmallVector<Value> multiplyRows(Value queries, Value firstRow, Value keys,
                                  function_ref<void()> meanwhile) const;

  /// The sums plus the products of weights and the columns of a tile, as many
  /// as there are sums, from `firstColumn` on.
  SmallVector<Value> addColumns(ArrayRef<Fragment> weights, Value values,
                                Value firstColumn, ArrayRef<Value> sums) const;

  /// Makes what the thread has stored in tiles visible to products after the
  /// next barrier.
  void emitFence() const;

private:
  SmallVector<Value> wait(ValueRange started) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_WARPGROUPCORES_H
