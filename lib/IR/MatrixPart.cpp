//===- MatrixPart.cpp - Parts of tiles that are multiplied ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/MatrixPart.h"

#include "kvcache/TMA/MatrixDescriptor.h"

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
  if (getLastRow() >= 0 && getLastColumn() >= 0)
    return success();
  return op->emitOpError("expects '")
         << name << "' to have at least " << rows << " rows and " << columns
         << " columns, got " << type.getRows() << " and " << type.getColumns();
}
