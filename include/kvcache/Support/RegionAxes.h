//===- RegionAxes.h - What the values of a region depend on -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_REGIONAXES_H
#define KVCACHE_SUPPORT_REGIONAXES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kvcache {

/// The axes of a matrix that a value depends on. The rows of scores are queries
/// of a head, and the columns are tokens.
struct Axes {
  bool row = false, column = false;

  bool any() const { return row || column; }
  Axes operator|(const Axes &other) const {
    return {row || other.row, column || other.column};
  }
};

/// The values that an op or its regions use, and that it does not define.
SetVector<Value> getUsedValues(Operation *op);

/// Answers whether a value of a region with one block, which computes an
/// element of a matrix, is equal for all rows, or for all columns.
///
/// The results of an op depend on what any value that it uses depends on.
/// Values from outside depend on neither axis.
class RegionAxes {
public:
  /// `arguments` has the axes of each argument of the region.
  RegionAxes(Region &region, ArrayRef<Axes> arguments);

  Axes get(Value value) const { return axes.lookup(value); }
  /// Whether the region's block defines the value.
  bool contains(Value value) const { return axes.contains(value); }

  /// Whether an op that depends on the axis may read memory or trap: its index
  /// has to be one that exists.
  bool isRowBound() const { return isBound(&Axes::row); }
  bool isColumnBound() const { return isBound(&Axes::column); }

private:
  bool isBound(bool Axes::*axis) const;

  Block &body;
  DenseMap<Value, Axes> axes;
};

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_REGIONAXES_H
