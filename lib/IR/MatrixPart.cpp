//===- MatrixPart.cpp - Parts of tiles that are multiplied ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/MatrixPart.h"

#include "kvcache/TMA/MatrixDescriptor.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

MatrixPart MatrixPart::get(StringRef name, TypedValue<TileType> tile,
                           Major major, Value row, Value column, int64_t size,
                           int64_t k) {
  constexpr int64_t atomRows = 8;
  tma::TileLayout layout = tile.getType().getLayout();
  bool isKMajor = major == Major::K;
  int64_t unitBytes = isKMajor ? kStepBytes : tma::getSpan(layout.swizzle);
  return {name,
          tile,
          major,
          row,
          column,
          atomRows,
          std::max<int64_t>(unitBytes / layout.elementBytes, 1),
          isKMajor ? size : k,
          isKMajor ? k : size};
}

LogicalResult MatrixPart::verify(Operation *op) const {
  TileType type = tile.getType();
  if (type.getSwizzle() == Swizzle::None)
    return op->emitOpError("expects '")
           << name << "' to have a swizzle, got " << type;
  int64_t bytes = type.getLayout().getChunkBytes();
  if (bytes >= tma::MatrixDescriptor::kAddressBytes)
    return op->emitOpError("expects '") << name << "' to have fewer than "
                                        << tma::MatrixDescriptor::kAddressBytes
                                        << " bytes in a chunk, got " << bytes;
  return verifySize(op);
}

LogicalResult MatrixPart::verifySize(Operation *op) const {
  TileType type = tile.getType();
  if (getLastRow() >= 0 && getLastColumn() >= 0)
    return success();
  return op->emitOpError("expects '")
         << name << "' to have at least " << rows << " rows and " << columns
         << " columns, got " << type.getRows() << " and " << type.getColumns();
}

static LogicalResult checkPlace(Operation *op, const Twine &index, Value value,
                                int64_t unit, int64_t last) {
  std::optional<int64_t> constant = getConstantIntValue(value);
  if (!constant)
    return success();
  if (*constant % unit != 0)
    return op->emitOpError("expects '") << index << "' to be a multiple of "
                                        << unit << ", got " << *constant;
  if (*constant < 0 || *constant > last)
    return op->emitOpError("expects '")
           << index << "' to be from 0 to " << last
           << ", so that the part is in the tile, got " << *constant;
  return success();
}

LogicalResult kvcache::checkPlaces(Operation *op, ArrayRef<MatrixPart> parts) {
  for (const MatrixPart &part : parts)
    if (failed(checkPlace(op, part.name + "_row", part.row, part.rowUnit,
                          part.getLastRow())) ||
        failed(checkPlace(op, part.name + "_column", part.column,
                          part.columnUnit, part.getLastColumn())))
      return failure();
  return success();
}
