//===- CPUTileSoftmax.h - The softmax of a tile -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILESOFTMAX_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILESOFTMAX_H

#include "../ScoreMath.h"
#include "CPUTileMask.h"
#include "CPUTileProduct.h"

namespace mlir::kvcache {

/// The online softmax of rows over tiles, in base 2.
class CPUTileSoftmax {
public:
  CPUTileSoftmax(const Frame &frame, AttentionOp op, const CPUShape &shape,
                 const CPURowMemory &memory, const CPUTile &tile)
      : frame(frame), op(op), f(frame), shape(shape), memory(memory),
        tile(tile), mask(frame, op, shape),
        product(frame, shape, memory, tile) {}

  const CPUTileMask &getMask() const { return mask; }

  /// A tile that begins at a token, the tokens of it that a row sees by
  /// position, and what prefetches a share of the next tile, from the token of
  /// a number on.
  struct Step {
    const QueryRows &rows;
    const CPURow &row;
    Value token;
    TokenRange seen;
    std::function<void(int64_t first)> prefetch;
  };
  /// Adds the tokens of a tile to the sums of rows that see the same.
  void add(const Step &step) const;

private:
  /// The scores of the tokens of the tile, in base 2, of each row: -inf where a
  /// region excludes a token.
  SmallVector<Value> computeScores(const Step &step) const;
  /// Appends the products of `columns` tokens, whose elements are their sums;
  /// zeros if the row sees none of them.
  void addProducts(const Step &step, int64_t first,
                   SmallVector<SmallVector<Value>> &products) const;
  /// The weights of a tile. Updates the largest scores and the sums.
  CPUTileProduct::Weights computeWeights(const Step &step) const;
  /// Adds the values of the tile, where flags are given those that rows see.
  void addValues(const Step &step,
                 const CPUTileProduct::Weights &weights) const;
  /// Whether the columns of a tile from `first` on have a token before the end
  /// of what a row sees. The first column does.
  Value hasColumn(const Step &step, int64_t first) const;

  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  DeviceMath f;
  const CPUShape &shape;
  const CPURowMemory &memory;
  const CPUTile &tile;
  CPUTileMask mask;
  CPUTileProduct product;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILESOFTMAX_H
