//===- LaneLayout.h - What a lane has of products ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_LANELAYOUT_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_LANELAYOUT_H

#include "AttentionChoices.h"

namespace mlir::kvcache {

/// What a lane has of the products of a block: elements in some query rows and
/// some columns, which are tokens or elements of values. Columns come in runs
/// that are beside each other.
///
/// A lane of a warp with 16 query rows has two of them, and of each 8 columns a
/// run of two.
class LaneLayout {
public:
  static int64_t countRows() { return 2; }
  static int64_t countRuns(int64_t columns) { return columns / 8; }
  static int64_t countElements(int64_t columns) {
    return countRows() * countRuns(columns) * getRunSize();
  }
  static int64_t getRunSize() { return 2; }

  /// The distance of a run from the lane's first column.
  static int64_t getColumn(int64_t run) { return 8 * run; }
  /// The distance of a row from the lane's first row.
  static int64_t getRow(int64_t row) { return 8 * row; }
  /// The number of an element of a run among those of the lane.
  static int64_t getElement(int64_t row, int64_t run, int64_t ofRun) {
    return 4 * run + 2 * row + ofRun;
  }
  /// The row of an element.
  static int64_t getRowOf(int64_t element) { return element / 2 % 2; }
  /// The elements of a row, an even number.
  static SmallVector<int64_t> getElements(int64_t row, int64_t columns) {
    SmallVector<int64_t> elements;
    for (int64_t run = 0; run < countRuns(columns); ++run)
      for (int64_t e = 0; e < getRunSize(); ++e)
        elements.push_back(getElement(row, run, e));
    return elements;
  }

  /// Lanes that share the columns of a row, and the distance between them.
  static int64_t countSharers() { return 4; }
  static int64_t getSharerStride() { return 1; }
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_LANELAYOUT_H
