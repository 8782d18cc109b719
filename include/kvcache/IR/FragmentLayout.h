//===- FragmentLayout.h - Which elements a lane has -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layouts of fragments, as a table. A layout is given bit by bit: each bit
// of the number of a lane, and of an element of a lane, adds a distance to the
// row or to the column.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTLAYOUT_H
#define KVCACHE_IR_FRAGMENTLAYOUT_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// The distance that a bit adds to the row or to the column.
struct LayoutDigit {
  bool isRow;
  int64_t distance;

  bool operator==(const LayoutDigit &other) const {
    return isRow == other.isRow && distance == other.distance;
  }
};

/// An element, relative to the first one of its lane.
struct ElementPlace {
  int64_t row, column;

  bool operator==(const ElementPlace &other) const {
    return row == other.row && column == other.column;
  }
};

/// The digits of a layout. They describe an atom of a warp, which repeats along
/// the columns; each warp of a team has 16 rows more.
struct LayoutDigits {
  static constexpr int64_t kRowsOfWarp = 16, kLanes = 32;

  int64_t warps;
  /// The bits of an element; 0 for any number up to 32, each in a register.
  int64_t elementBits;
  ArrayRef<LayoutDigit> lane, element;

  static const LayoutDigits &get(FragmentLayout layout);

  int64_t countRows() const { return warps * kRowsOfWarp; }
  int64_t countThreads() const { return warps * kLanes; }
  /// The columns of an atom.
  int64_t countColumns() const;
  /// Elements in a register of 32 bits.
  int64_t countPacked() const { return elementBits ? 32 / elementBits : 1; }
  /// Whether it is the layout of C and D.
  bool isAccumulator() const { return elementBits == 0; }

  /// The elements of a lane in a matrix of so many columns, in the order of its
  /// registers.
  SmallVector<ElementPlace> getPlaces(int64_t columns) const;
  /// The rows of a lane, in ascending order.
  SmallVector<int64_t> getRows() const;
  /// The bits of the lane's number that do not change the row.
  SmallVector<int64_t> getSharerStrides() const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_IR_FRAGMENTLAYOUT_H
