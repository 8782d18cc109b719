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

/// Keys and values of a head for some tokens, converted once for all rows of a
/// block: to f32, or where products are of pairs of bf16, to these. Elements
/// with a scale for each token are not scaled.
class TokenTile {
public:
  /// Allocates a tile of so many tokens, a multiple of 32.
  TokenTile(const HostAttention &attention, int64_t tokens);

  /// Loads tokens [first, first + count) of the rows for a head; those after
  /// `last` are copies of it, and those of negative ids zeros. Returns whether
  /// a value is infinite or not a number.
  Value load(const QueryRows &rows, Value head, Value first, Value count,
             Value last) const;

  const int64_t tokens;
  /// Elements of keys and of values that are loaded at once.
  const int64_t keyLanes, valueLanes;
  /// Memory of [tokens, size]. Pairs of keys are two elements of a token, pairs
  /// of values an element of two tokens. Keys of AMX are in contiguous tiles,
  /// as `getTiledIndices` has them.
  Value keys, values;
  /// For AMX, pairs of values as tiles of [size, tokens / 2]; null for others.
  Value transposedValues;
  /// The values that are not finite, apart from others: pairs like those of
  /// `values`, if `load` returned true; null without pairs.
  Value nonFinite;
  /// Memory of [tokens], for elements that are not scaled; null for others.
  Value keyScales, valueScales;
  /// Encoded rows of sparse rows, [tokens] of i32; null for others.
  Value ids;

private:
  /// A head of a token. If `isGiven` is not null and does not hold, zeros.
  struct Token {
    Place place;
    Value head, isGiven;
  };
  /// The token of column `j`, whose id is stored if it has one.
  Token getToken(const QueryRows &rows, Value head, Value column,
                 Value j) const;
  Value loadPiece(Value cache, const Token &token, Value d,
                  int64_t lanes) const;
  /// Stores elements of row `j` of the keys, from `first` on. Returns `worst`,
  /// the largest magnitudes of values as bits, with those of these elements if
  /// it is not null.
  Value storeKeys(Value cache, const Token &token, Value j, int64_t first,
                  int64_t size, Value worst) const;
  /// Stores the values of one token or two, from row `j` on, and returns
  /// `worst` with them.
  Value storeValues(ArrayRef<Token> loaded, Value j, Value worst) const;
  void storeScale(Value cache, const Token &token, Value scales, Value j) const;
  /// The larger of bits of magnitudes: of floats, or of pairs for pairs.
  Value getLargerMagnitude(Value values, Value worst) const;
  /// Prefetches a head of a token.
  void prefetch(const QueryRows &rows, Value head, Value column) const;
  void transposeValues(Value count) const;

  const HostAttention &attention;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_TOKENTILE_H
