//===- QueryTile.h - The queries of a block on tensor cores -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_QUERYTILE_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_QUERYTILE_H

#include "Heads.h"
#include "TensorCores.h"

namespace mlir::kvcache {

/// A tile of queries in shared memory, of which each warp loads 16 rows as
/// fragments.
class QueryTile {
public:
  /// `rows` rows of `size` elements, which become `lane`.
  QueryTile(const Frame &frame, const JoinedRows &queries, FloatType lane,
            int64_t rows, int64_t size);

  void allocate();
  /// Stores the rows, of a query and a head that `getRow` gives, by `threads`
  /// threads. A barrier after it is the caller's.
  void store(Value thread, int64_t threads,
             function_ref<std::pair<Value, Value>(Value ofTile)> getRow) const;
  /// Loads fragments of the 16 rows from `firstRow` on, unless there are too
  /// many.
  void keep(const TensorCores &cores, Value firstRow);
  Value getTile() const { return tile; }
  /// The fragment of the elements from `d` on.
  Fragment get(const TensorCores &cores, Value firstRow, int64_t d) const;

private:
  Frame frame;
  OpBuilder &builder;
  Location loc;
  JoinedRows queries;
  FloatType lane;
  int64_t rows, size;
  Value tile;
  /// All of a row; empty if a warp has no registers for them.
  SmallVector<Fragment> kept;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_QUERYTILE_H
