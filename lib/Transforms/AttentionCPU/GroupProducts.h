//===- GroupProducts.h - Products of a group of rows and a tile -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_GROUPPRODUCTS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_GROUPPRODUCTS_H

#include "NextTile.h"

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
  /// Runs `body` with all columns that the group sees, `count` at once.
  void forColumns(int64_t count,
                  function_ref<void(const TileColumns &)> body) const;

  SmallVector<Value> sumProducts(const TileColumns &all) const;
  /// Loads a piece of a key, or of a query, in the form that is multiplied.
  SmallVector<Value> loadKey(const HeadField &field, const Place &place,
                             Value d) const;
  SmallVector<Value> loadQuery(const HeadField &field, int64_t row,
                               Value d) const;
  void rescale(Value factors) const;
  void addColumns(const TileColumns &all, bool skipsUnseen) const;
  /// Adds columns that are all seen by dot products of pairs of tokens.
  void addPairs(const TileColumns &all) const;
  /// A row of the group in memory.
  Value getRow(int64_t row) const;

  const HostAttention &attention;
  const Frame &frame;
  const FewRowsMemory &memory;
  const RowGroup &group;
  const HeadTile &tile;
  Value end;
  /// Tokens whose products are summed at once.
  int64_t columns;
  NextTile nextTile;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_GROUPPRODUCTS_H
