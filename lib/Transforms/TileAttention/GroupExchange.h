//===- GroupExchange.h - Numbers of two warpgroups' rows --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_GROUPEXCHANGE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_GROUPEXCHANGE_H

#include "FragmentBuilder.h"
#include "TileRows.h"

namespace mlir::kvcache {

/// Allocates shared memory for numbers of rows: so many lines of each row.
Value allocateRowNumbers(const Frame &frame, int64_t lines, int64_t rows);
/// Stores a number of each row in a line.
void storeRowNumbers(const Frame &frame, const FragmentBuilder &b, Value rows,
                     Value rowNumbers, Value line);

/// The exchange of two warpgroups that share the rows of a block: numbers of
/// each row in shared memory, and the turns in which they are stored.
class GroupExchange {
public:
  /// The numbers of a row that a warpgroup stores.
  enum RowNumber { Max, Sum };

  /// `rowNumbers` is the memory, and `group` the number of the thread's
  /// warpgroup.
  GroupExchange(const Frame &frame, const FragmentBuilder &b, Value rowNumbers,
                Value group)
      : frame(frame), b(b), rowNumbers(rowNumbers), group(group) {}

  /// Allocates the memory for so many rows.
  static Value allocate(const Frame &frame, int64_t rows);

  Value getGroup() const { return group; }
  Value getOther() const { return frame.sub(frame.index(1), group); }

  /// Stores a number of each row, where the other warpgroup loads it.
  void store(RowNumber number, Value rows) const;
  /// Loads the other warpgroup's number of each row.
  Value load(RowNumber number, FragmentType type) const;

  /// Waits until the other warpgroup has given the turn.
  void takeTurn() const;
  /// Gives the turn. The other warpgroup then sees all stores before it.
  void giveTurn() const;
  /// Synchronizes the threads of the warpgroup.
  void syncGroup() const;

private:
  /// The index of the numbers that a warpgroup stores.
  Value getPlace(RowNumber number, Value storer) const;
  void sync(Value barrier, int64_t threads) const;
  /// The barrier of the turns that a warpgroup gives.
  Value getTurns(Value giver) const;

  const Frame &frame;
  const FragmentBuilder &b;
  Value rowNumbers, group;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_GROUPEXCHANGE_H
