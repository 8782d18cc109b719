//===- MatrixPart.h - Parts of tiles that are multiplied --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_MATRIXPART_H
#define KVCACHE_IR_MATRIXPART_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// A part of a tile that is an operand of `mma` or `tmem_mma`.
struct MatrixPart {
  /// The bytes of K of one instruction: PTX ISA, "Matrix Shape".
  static constexpr int64_t kStepBytes = 32;

  /// The part of `size` rows of A or columns of B, and `k`.
  static MatrixPart get(StringRef name, TypedValue<TileType> tile, Major major,
                        Value row, Value column, int64_t size, int64_t k);

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

  /// Checks for a verifier that the tile has a descriptor, and the part.
  LogicalResult verify(Operation *op) const;
  /// Checks for a verifier that the tile has the part.
  LogicalResult verifySize(Operation *op) const;
};

/// Checks for a lowering that the constant places of parts are in their tiles,
/// and multiples of the units.
LogicalResult checkPlaces(Operation *op, ArrayRef<MatrixPart> parts);

} // namespace mlir::kvcache

#endif // KVCACHE_IR_MATRIXPART_H
