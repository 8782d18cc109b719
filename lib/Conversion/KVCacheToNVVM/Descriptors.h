//===- Descriptors.h - Matrices in shared memory ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETONVVM_DESCRIPTORS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETONVVM_DESCRIPTORS_H

#include "kvcache/IR/MatrixPart.h"
#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/TMA/MatrixDescriptor.h"

namespace mlir::kvcache {

/// Builds the descriptors of a part of a tile.
class DescriptorBuilder {
public:
  DescriptorBuilder(OpBuilder &builder, Location loc, const MatrixPart &part,
                    tma::MatrixFormat format);

  /// The descriptor of what begins at element `k` of K.
  Value get(int64_t k);

private:
  /// Where a column is in row 0, without the swizzle.
  int64_t getColumnBytes(int64_t column) const;
  Value getColumnBytes(Value column) const;
  Value getStart(int64_t k) const;

  IndexBuilder b;
  TypedValue<TileType> tile;
  tma::TileLayout layout;
  tma::Major major;
  tma::MatrixFormat format;
  Value row, column, start;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETONVVM_DESCRIPTORS_H
