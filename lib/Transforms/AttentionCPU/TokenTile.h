//===- TokenTile.h - Tokens of a cache as f32 in memory ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_TOKENTILE_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_TOKENTILE_H

#include "HostAttention.h"

namespace mlir::kvcache {

/// Keys and values of a head for some tokens, converted to f32 once for all
/// rows of a block. Elements with a scale for each token are not scaled.
class TokenTile {
public:
  /// Allocates a tile of so many tokens.
  TokenTile(const HostAttention &attention, int64_t tokens);

  /// Loads tokens [first, first + count) of the rows for a head; those after
  /// `last` are copies of it, and those of negative ids zeros. Returns whether
  /// a value is infinite or not a number.
  Value load(const QueryRows &rows, Value head, Value first, Value count,
             Value last) const;

  const int64_t tokens;
  /// Elements of keys and of values that are loaded at once.
  const int64_t keyLanes, valueLanes;
  /// Memory of [tokens, size].
  Value keys, values;
  /// Memory of [tokens], for elements that are not scaled; null for others.
  Value keyScales, valueScales;
  /// Encoded rows of sparse rows, [tokens] of i32; null for others.
  Value ids;

private:
  /// A head of a token; without a place, zeros.
  struct Token {
    std::optional<Place> place;
    Value head;
  };
  /// Loads row `j` of the tile. Returns `worst`, the largest magnitudes of
  /// values as bits, with those of this row. Keys whose first elements are
  /// values count as a whole.
  Value loadToken(const Token &token, Value j, Value worst) const;
  Value loadPieces(Value cache, const Token &token, Value tile, Value j,
                   int64_t first, int64_t size, Value worst) const;
  void loadScale(Value cache, const Token &token, Value scales, Value j) const;
  Value getLargerMagnitude(Value values, Value worst) const;

  const HostAttention &attention;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_TOKENTILE_H
