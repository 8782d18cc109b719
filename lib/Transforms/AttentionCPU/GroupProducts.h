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
  /// Runs `body` with all columns that the group sees, and prefetches some
  /// tokens of the next tile for each, so that memory is always busy.
  void forColumns(int64_t firstPrefetched, int64_t endPrefetched,
                  function_ref<void(const Columns &)> body) const;
  void prefetch(Value token) const;

  SmallVector<Value> sumProducts(const Columns &all) const;
  void rescale(Value factors) const;
  void addColumns(const Columns &all, bool skipsUnseen) const;
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
