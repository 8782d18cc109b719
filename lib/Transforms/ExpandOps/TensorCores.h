//===- TensorCores.h - Products of tiles on tensor cores --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TENSORCORES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TENSORCORES_H

#include "Frame.h"
#include "kvcache/IR/KVCacheDialect.h"

#include <array>

namespace mlir::kvcache {

/// A lane's share of 16 x 16 elements of 16 bits: four pairs, as i32. As a left
/// operand, they are rows l / 4 and l / 4 + 8 of columns 2 * (l mod 4) and the
/// next, and then of those 8 columns further.
using Fragment = std::array<Value, 4>;
/// A lane's share of 16 x 8 sums: columns 2 * (l mod 4) and the next of row
/// l / 4, and then of row l / 4 + 8.
using Accumulator = std::array<Value, 4>;

/// Builds `mma.sync.m16n8k16` and the `ldmatrix` that read its operands from
/// tiles. All lanes of a warp execute what is built.
class TensorCores {
public:
  TensorCores(const Frame &frame, Value lane);

  /// The widest swizzle for rows of so many elements of 16 bits.
  static Swizzle getSwizzle(int64_t columns);
  /// Such a tile, whose columns are a multiple of 16.
  static TileType getTile(Type lane, int64_t rows, int64_t columns);

  /// Loads 16 x 16 elements of a tile; its row and column are multiples of 16.
  /// The matrices of 8 x 8 are those at (0, 0), (8, 0), (0, 8) and (8, 8), each
  /// transposed or not. Of a tile with elements of 8 bits, two beside each
  /// other are one.
  Fragment load(Value tile, Value firstRow, Value firstColumn,
                bool transposed) const;

  /// The sums plus the product of 16 x 16 elements, and 16 x 8 elements whose
  /// upper and lower halves are `b0` and `b1`.
  Accumulator multiply(const Fragment &a, Value b0, Value b1,
                       const Accumulator &sums, Type lane) const;

  /// Two floats as a pair of a fragment, rounded to nearest even.
  Value pack(Value low, Value high, Type lane) const;

private:
  Frame frame;
  OpBuilder &builder;
  Location loc;
  /// What the lane addresses for a load: a row, and one of two columns.
  Value row, column;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TENSORCORES_H
