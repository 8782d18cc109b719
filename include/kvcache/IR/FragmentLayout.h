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

/// Elements of a lane that lie side by side in a row: their numbers, and the
/// place of the first one.
struct ElementRun {
  ElementPlace place;
  SmallVector<int64_t> elements;
};

/// The digits of a layout. They describe an atom of a team, which repeats along
/// the columns, or first along the rows and then along the columns.
struct LayoutDigits {
  static constexpr int64_t kRowsOfWarp = 16, kLanes = 32;
  /// The most rows of a layout whose atom repeats along them.
  static constexpr int64_t kMostRows = 256;

  FragmentLayout layout;
  /// The bits of an element; 0 for any number up to 32, each in a register.
  int64_t elementBits;
  /// The bits of the number of a warp in its team, of a lane, and of an
  /// element.
  ArrayRef<LayoutDigit> warp, lane, element;
  /// Whether the atom repeats along the rows.
  bool repeatsRows = false;

  /// Returns the digits of a layout with so many rows, or with the fewest rows
  /// that it may have.
  static const LayoutDigits &get(FragmentLayout layout, int64_t rows);
  static const LayoutDigits &get(FragmentType type) {
    return get(type.getLayout(), type.getRows());
  }
  /// Returns the rows that fragments of a layout may have.
  static SmallVector<int64_t> getRowCounts(FragmentLayout layout);

  int64_t countWarps() const { return int64_t(1) << warp.size(); }
  int64_t countThreads() const { return countWarps() * kLanes; }
  /// The rows and the columns of an atom.
  int64_t countRows() const { return count(/*rows=*/true); }
  int64_t countColumns() const { return count(/*rows=*/false); }
  /// Elements in a register of 32 bits.
  int64_t countPacked() const { return elementBits ? 32 / elementBits : 1; }
  /// Whether it is the layout of C and D.
  bool isAccumulator() const { return elementBits == 0; }
  /// Whether warps of a team share rows.
  bool hasSharedRows() const;

  /// The elements of a lane in a matrix, in the order of its registers.
  SmallVector<ElementPlace> getPlaces(int64_t rows, int64_t columns) const;
  static SmallVector<ElementPlace> getPlaces(FragmentType type) {
    return get(type).getPlaces(type.getRows(), type.getColumns());
  }
  /// The elements of a run: those of a lane that lie side by side in a row, or
  /// in a column, of an operand in one register.
  int64_t countRun(bool alongRows = false) const;
  /// The runs of a lane, in the order of their first elements.
  static SmallVector<ElementRun> getRuns(FragmentType type,
                                         bool alongRows = false);
  /// The rows of a lane, in ascending order.
  SmallVector<int64_t> getRows(int64_t rows) const;
  static SmallVector<int64_t> getRows(FragmentType type) {
    return get(type).getRows(type.getRows());
  }
  /// The bits of the lane's number that do not change the row.
  SmallVector<int64_t> getSharerStrides() const;
  /// Whether each lane has the same rows in two types.
  static bool haveSameRows(FragmentType one, FragmentType other);

private:
  int64_t count(bool rows) const;
};

/// Whether `wgmma` computes accumulators of a layout.
inline bool isWgmmaAcc(FragmentLayout layout) {
  return layout == FragmentLayout::WgmmaAcc ||
         layout == FragmentLayout::WgmmaAccT;
}

/// Whether `tmem_load` gives fragments of a layout.
inline bool isTensorMemory(FragmentLayout layout) {
  return layout == FragmentLayout::TmemAcc || layout == FragmentLayout::TmemRow;
}

} // namespace mlir::kvcache

#endif // KVCACHE_IR_FRAGMENTLAYOUT_H
