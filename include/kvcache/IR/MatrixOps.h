//===- MatrixOps.h - Products of tiles ---------------------------*- C++
//-*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_MATRIXOPS_H
#define KVCACHE_IR_MATRIXOPS_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// A part of a tile that is an operand of `mma`.
struct MatrixPart {
  /// The name of the operand.
  StringRef name;
  TypedValue<TileType> tile;
  Major major;
  /// Where it begins, multiples of the units.
  Value row, column;
  int64_t rowUnit, columnUnit;
  /// Its size.
  int64_t rows, columns;

  /// The largest row and column at which it can begin.
  int64_t getLastRow() const { return tile.getType().getRows() - rows; }
  int64_t getLastColumn() const {
    return tile.getType().getColumns() - columns;
  }
};

} // namespace mlir::kvcache

#define GET_OP_CLASSES
#include "kvcache/IR/MatrixOps.h.inc"

#endif // KVCACHE_IR_MATRIXOPS_H
