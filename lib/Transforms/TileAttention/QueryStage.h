//===- QueryStage.h - The queries of a block in a tile ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_QUERYSTAGE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_QUERYSTAGE_H

#include "FragmentBuilder.h"
#include "TileRows.h"

namespace mlir::kvcache {

/// The query rows of a block in a tile of shared memory. Where the softmax
/// multiplies products by a factor, they have its sign.
///
/// For products with stored elements of 8 or 4 bits, rows of bf16 are
/// multiplied by powers of two so that they are numbers of f16: their largest
/// elements are then in [2^14, 2^15). The columns are in the order of `paired`
/// loads.
class QueryStage {
public:
  /// `threads` threads of the block store the rows as `element`.
  QueryStage(const TileRows &block, FloatType element, int64_t threads);

  void allocate();
  Value getTile() const { return tile; }
  /// Stores the rows. Those from `count` on are zeros; if it is null, they
  /// repeat the last token. The barrier after it is the caller's.
  void store(Value count) const;
  /// Loads the factors of products with rows from `firstRow` on, a number of
  /// each row of a fragment type; null if there are none.
  Value loadFactors(const FragmentBuilder &b, FragmentType rows,
                    Value firstRow) const;

private:
  Value loadRow(Value row, Value d) const;
  /// Scales the elements of a run of a row, so that they fit into f16. The
  /// threads of a row do so together, and one stores its factor.
  Value scaleRow(Value elements, Value row, Value d) const;
  void storeRun(Value elements, Value row, Value d) const;
  /// Multiplies elements of 16 bits by the sign of a factor.
  Value flipSigns(Value elements, Value factor) const;

  const TileRows &block;
  const Frame &frame;
  FloatType element;
  int64_t threads;
  bool hasFactors;
  Value tile, factors;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_QUERYSTAGE_H
