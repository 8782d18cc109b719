//===- RowMath.h - Norm and rope of a head ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_ROWMATH_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_ROWMATH_H

#include "../Builders/Frame.h"

#include "kvcache/Support/FloatBuilder.h"

namespace mlir::kvcache {

/// Loads `count` elements from `d` on of the head of a row, as it lies in
/// memory.
using LoadHead = function_ref<Value(Value d, int64_t count)>;

/// The norm of a head: weights of the first elements, or null.
struct Norm {
  Value weights;
  int64_t size = 0;
  float epsilon = 0;
};

/// The rotation of elements [begin, begin + size) by rows of a table, or null.
struct Rope {
  Value table;
  /// The rows of the table: one for each axis.
  ArrayRef<Value> positions;
  /// The axis of each pair of elements; empty if there is one axis.
  ArrayRef<int64_t> axes;
  int64_t begin = 0;
  int64_t size = 0;
  bool interleaved = false;
};

/// Computes pieces of one head in f32: normed, then rotated.
class HeadMath {
public:
  /// On a GPU, `lane` is the thread of the head, and null elsewhere.
  HeadMath(const Frame &frame, LoadHead load, const Norm &norm,
           const Rope &rope, int64_t headSize, const Split &split, Value lane);

  /// The elements from `d` on. Without norm and rope, as they are in memory.
  Value compute(Value d) const;

private:
  /// The factor `1 / sqrt(mean(x^2) + epsilon)`.
  Value computeFactor(int64_t headSize, Value lane) const;
  /// The sum of the squares of the normed elements in a piece.
  Value addSquares(Value d) const;
  Value loadNormed(Value d) const;
  /// Loads what a piece is rotated with: the other half of the elements, or of
  /// interleaved ones the neighbour of a piece of one element.
  Value rotateByPartner(Value d, Value normed) const;
  /// Rotates interleaved elements of pieces that hold both of each pair.
  Value rotatePairs(Value d, Value normed) const;
  /// The cosines of `count` pairs from `pair` on, a multiple of `count`.
  Value loadCosines(Value pair, int64_t count) const;
  /// Their sines.
  Value loadSines(Value pair, int64_t count) const;
  /// Their columns from `first + pair` on.
  Value loadTable(Value pair, int64_t first, int64_t count) const;
  /// The row of the table for `count` pairs of one axis.
  Value selectPosition(Value pair,
                       ArrayRef<std::pair<int64_t, int64_t>> runs) const;
  /// For each of `count` pairs, whether it has this axis.
  Value isOnAxis(Value pair, int64_t axis, int64_t count) const;
  /// `otherwise` outside of [begin, begin + size), `inside(d - begin)` in it.
  Value selectRange(Value d, int64_t begin, int64_t size, int64_t headSize,
                    function_ref<Value(Value)> inside, Value otherwise) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  FloatBuilder f;
  LoadHead load;
  Norm norm;
  Rope rope;
  int64_t headSize;
  Split split;
  Value factor;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_ROWMATH_H
