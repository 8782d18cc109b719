//===- RowTransfer.h - From rows of arrays to lanes and back ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWTRANSFER_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWTRANSFER_H

#include "RowLanes.h"

namespace mlir::kvcache {

/// Moves a vector of rows between arrays, where the elements of a row are
/// neighbours, and memory of lanes. The memory of scores has the matrix that is
/// transposed, so that a loop has the code of one row.
class RowTransfer {
public:
  /// Returns the row of a lane.
  using GetRow = function_ref<HostAttention::Row(Value lane)>;

  RowTransfer(const HostAttention &attention, const RowLanes &memory,
              Value head)
      : attention(attention), frame(attention.frame), memory(memory),
        lanes(attention.frame), head(head) {}

  /// Loads the queries of the rows from `lane` on, `width` elements at once.
  void loadQueries(Value lane, int64_t width, GetRow getRow) const;
  /// Stores the accumulators of the rows from `lane` on, times the factors that
  /// are in place of their sums, as outputs.
  void storeOutputs(Value lane, GetRow getRow) const;

private:
  /// Prefetches the queries of the rows from `lane` on.
  void prefetchQueries(Value lane, GetRow getRow) const;
  void loadPiece(Value lane, Value d, int64_t width, GetRow getRow) const;
  void storePiece(Value lane, Value d, int64_t width, GetRow getRow) const;
  /// Runs `body` with the number of each row and its indices in the matrix.
  void forRows(function_ref<void(Value, ValueRange)> body) const;
  SmallVector<Value> getIndices(int64_t row) const {
    return {frame.index(0), frame.index(row), frame.index(0)};
  }

  const HostAttention &attention;
  const Frame &frame;
  const RowLanes &memory;
  LaneBuilder lanes;
  Value head;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ROWTRANSFER_H
