//===- QueryStage.h - The queries of a block in a tile ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_QUERYSTAGE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_QUERYSTAGE_H

#include "../ExpandOps/TileRows.h"

namespace mlir::kvcache {

/// The query rows of a block in a tile of shared memory. Where the softmax
/// multiplies products by a factor, they have its sign.
class QueryStage {
public:
  /// `threads` threads of the block store the rows as `element`.
  QueryStage(TileRows &block, FloatType element, int64_t threads)
      : block(block), frame(block.frame), element(element), threads(threads) {}

  void allocate();
  Value getTile() const { return tile; }
  /// Stores the rows. Those from `count` on are zeros; if it is null, they
  /// repeat the last token. The barrier after it is the caller's.
  void store(Value count) const;

private:
  Value loadRow(Value row, Value d) const;
  /// Multiplies elements of 16 bits by the sign of a factor.
  Value flipSigns(Value elements, Value factor) const;

  TileRows &block;
  const Frame &frame;
  FloatType element;
  int64_t threads;
  Value tile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_QUERYSTAGE_H
