//===- GroupProducts.h - Products of a group of rows and a tile -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_GROUPPRODUCTS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_GROUPPRODUCTS_H

#include "RowGroup.h"

namespace mlir::kvcache {

/// The products of a group of rows and a tile of tokens, of which the group
/// sees those before `end`. Keys and values are loaded from the cache.
class GroupProducts {
public:
  GroupProducts(const HostAttention &attention, const FewRowsMemory &memory,
                const RowGroup &group, const HeadTile &tile, Value end);

  /// Stores the sums of products of keys as scores.
  void multiplyKeys() const;
  /// Adds values times the probs to the accumulators, which are multiplied by
  /// a factor for each row first. Unless all tokens are seen, probs of -0 add
  /// nothing, whatever the value is.
  void addValues(Value factors, Value areAllSeen) const;

private:
  /// Tokens of the tile from `first` on, whose products are summed at once.
  struct Columns {
    Value first;
    SmallVector<Place> places;
  };
  /// Runs `body` with all columns that the group sees, `count` at once.
  void forColumns(int64_t count,
                  function_ref<void(const Columns &)> body) const;

  /// Rows of memory that are prefetched beside the pieces of a field. The field
  /// has parts of some pieces, beside each of which as many rows are prefetched
  /// line after line, so that memory is always busy.
  struct NextRows {
    SmallVector<Value> rows;
    int64_t size, width;
  };
  /// Finds what is prefetched of fields of columns of the next tile, beside the
  /// pieces of the first field: with products of keys or of values. Rows that
  /// are less or more than those pieces are prefetched at once.
  NextRows startPrefetches(const Columns &all, bool isForKeys,
                           ArrayRef<const HeadField *> fields) const;
  NextRows startPrefetchesForValues(const Columns &all) const;
  /// Prefetches what is beside the piece at `d`.
  void prefetchPiece(const NextRows &next, Value d) const;
  /// The place of the next tile that is prefetched for column `j`. Groups after
  /// the first of a head, and columns without a token, get `current`, which is
  /// in a cache of the CPU already.
  Place getNext(Value j, const Place &current) const;

  SmallVector<Value> sumProducts(const Columns &all) const;
  /// Loads a piece of a key, or of a query, in the form that is multiplied.
  SmallVector<Value> loadKey(const HeadField &field, const Place &place,
                             Value d) const;
  SmallVector<Value> loadQuery(const HeadField &field, int64_t row,
                               Value d) const;
  void rescale(Value factors) const;
  void addColumns(const Columns &all, bool skipsUnseen) const;
  /// Adds columns that are all seen by dot products of pairs of tokens.
  void addPairs(const Columns &all) const;
  /// A row of the group in memory.
  Value getRow(int64_t row) const;

  const HostAttention &attention;
  const Frame &frame;
  const FewRowsMemory &memory;
  const RowGroup &group;
  const HeadTile &tile;
  Value end;
  /// Tokens whose products are summed at once, and those of the next tile that
  /// are prefetched for as many keys; the others are for values.
  int64_t columns, prefetchedForKeys;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_GROUPPRODUCTS_H
