//===- CPUTile.h - Keys and values of some tokens ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILE_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILE_H

#include "../TokenLoader.h"
#include "CPUBlock.h"

namespace mlir::kvcache {

/// The keys and values of a tile of tokens in f32, a row for each token, so
/// that all rows of a block are computed with one conversion.
class CPUTile {
public:
  CPUTile(const Frame &frame, AttentionOp op, const CPUShape &shape)
      : frame(frame), op(op), loader(frame, op), shape(shape) {}

  void allocate();
  /// Converts tokens from `tile` on, of a head of the caches. Those after the
  /// last are copies of it, and those of negative ids zeros.
  void load(const QueryRows &rows, Value head, Value tile, Value lastToken);
  /// Prefetches row `j` of the tile after `tile`.
  void prefetch(const QueryRows &rows, Value head, Value tile, Value j,
                Value lastToken) const;

  /// Loads elements from `d` on of the key or value of token `j`.
  Value loadKey(int64_t j, Value d) const;
  Value loadValue(int64_t j, Value d) const;
  /// The scales of the tokens of the tile, or null.
  Value loadKeyScales() const { return loadScales(keyScales); }
  Value loadValueScales() const { return loadScales(valueScales); }
  bool hasValueScales() const { return valueScales != nullptr; }
  bool hasKeyScales() const { return keyScales != nullptr; }
  /// Which ids are not negative; null unless rows are sparse.
  Value areGiven() const { return isGiven; }

private:
  /// The rows of the tiles that are loaded: groups of `columns` with a token.
  /// Other groups are not multiplied, but the scales of all tokens are.
  Value countRows(Value tile, Value lastToken) const;
  /// The token of an id, which is read once.
  void loadId(const QueryRows &rows, Value head, Value column, Value j) const;
  /// Stores row `j` of the tiles: a token, or zeros.
  void loadToken(Value head, Value j, const std::optional<Place> &place) const;
  /// Stores elements of one cache from `first` on.
  void loadElements(Value cache, Value tile, Value head, Value j,
                    const std::optional<Place> &place, int64_t first,
                    int64_t size, int64_t lanes) const;
  Value loadScales(Value scales) const;

  const Frame &frame;
  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  TokenLoader loader;
  const CPUShape &shape;
  Value keyTile, valueTile;
  /// The scales of the tokens of the tiles, or null.
  Value keyScales, valueScales;
  /// The ids of the columns of the tile; null unless rows are sparse.
  Value ids, isGiven;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUTILE_H
