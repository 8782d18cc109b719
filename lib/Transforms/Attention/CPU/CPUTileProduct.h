//===- CPUTileProduct.h - Products of rows and a tile -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILEPRODUCT_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILEPRODUCT_H

#include "../../ExpandOps/DeviceMath.h"
#include "CPUTile.h"

namespace mlir::kvcache {

/// The products of rows of a token and some tokens of a tile, in f32: with keys
/// for scores, and with values into the accumulator.
class CPUTileProduct {
public:
  CPUTileProduct(const Frame &frame, const CPUShape &shape,
                 const CPURowMemory &memory, const CPUTile &tile)
      : frame(frame), f(frame), shape(shape), memory(memory), tile(tile) {}

  /// Adds the products with `columns` keys from `first` on to vectors,
  /// `columns` for each row. The sum of a vector's elements is a product.
  ValueRange multiplyKeys(const CPURow &row, int64_t first,
                          ValueRange sums) const;

  /// The weights of the values of a tile for each row, the factor of each row's
  /// accumulator, and, unless empty, which values each row sees.
  struct Weights {
    SmallVector<Value> rows;
    Value shrinks;
    SmallVector<Value> isSeen;
  };
  /// Adds `columns` values from `first` on to the accumulator; the first ones
  /// shrink it.
  void addValues(const CPURow &row, int64_t first,
                 const Weights &weights) const;

private:
  Value extract(Value vector, int64_t i) const;
  /// The values that a row sees, and zeros for others.
  SmallVector<Value> selectSeen(Value flags, int64_t first,
                                SmallVector<Value> values) const;
  /// Adds values to the elements of row `k` from `d` on.
  void addToRow(const CPURow &row, int64_t k, Value d, bool isFirst,
                Value shrinks, ValueRange factors, ValueRange values) const;

  const Frame &frame;
  DeviceMath f;
  const CPUShape &shape;
  const CPURowMemory &memory;
  const CPUTile &tile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILEPRODUCT_H
