//===- SplitCandidates.h - The candidates of splits of a row ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_SPLITCANDIDATES_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_SPLITCANDIDATES_H

#include "CandidateBuffer.h"
#include "kvcache/IR/SelectionOps.h"

namespace mlir::kvcache {

/// The candidates that blocks select from the splits of a row, in the
/// workspace: k for each split, and then their keys, 0 after the last one.
class SplitCandidates {
public:
  /// `row` is the index of the row without the column.
  SplitCandidates(TopRowsOp op, const Frame &frame, ValueRange row)
      : frame(frame), workspace(op.getWorkspace()), row(row),
        splits(op.countSplits()), k(op.countSelected()) {}

  /// The candidates of a split of a row that has so many: from the first up to
  /// the second number.
  ValuePair getRange(Value split, Value candidates) const;
  /// Stores the first `count` candidates of a buffer.
  void store(const RowTeam &team, Value split, const CandidateBuffer &buffer,
             Value count) const;

  /// The places of all splits.
  Value countPlaces() const { return frame.index(splits * k); }
  /// Loads the key and the number of the candidate of a place, as
  /// `CandidateBuffer::Load` does.
  ValuePair load(Value place) const;

private:
  /// The index of a number of a split in the workspace.
  SmallVector<Value> getIndex(Value split, Value column) const;

  const Frame &frame;
  Value workspace;
  ValueRange row;
  int64_t splits, k;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_SPLITCANDIDATES_H
