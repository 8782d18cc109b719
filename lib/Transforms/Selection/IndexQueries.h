//===- IndexQueries.h - The elements of index queries -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_INDEXQUERIES_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_INDEXQUERIES_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SelectionOps.h"

namespace mlir::kvcache {

/// Loads the queries of an op: floats, or MXFP4 in pairs of a byte.
class IndexQueries {
public:
  IndexQueries(IndexScoresOp op, const Frame &frame)
      : frame(frame), queries(op.getQ()), scales(op.getQScales()),
        weights(op.getWeights()) {}

  /// With checks, `row` is a row of queries, of their scales and weights.
  void checkRow(Value row) const;
  bool hasScales() const { return scales != nullptr; }
  /// Loads `count` elements of a query from `d` on, a multiple of `count`, as
  /// `lane` and without scales.
  Value load(Value row, Value head, Value d, int64_t count,
             FloatType lane) const;
  /// Loads the scale of a group of 32 elements, as f32.
  Value loadScale(Value row, Value head, Value group) const;

private:
  /// The elements of bytes.
  Value loadPairs(ValueRange query, Value d, int64_t count) const;

  const Frame &frame;
  Value queries, scales, weights;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_INDEXQUERIES_H
