//===- NextTile.h - Prefetches of the next tile -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_NEXTTILE_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_NEXTTILE_H

#include "RowGroup.h"

namespace mlir::kvcache {

/// Tokens of the tile from `first` on, whose products are summed at once.
struct TileColumns {
  Value first;
  SmallVector<Place> places;
};

/// Prefetches the next tile of a head in between the products of a group with
/// `columns` tokens: some beside products of keys, the others beside those of
/// values.
class NextTile {
public:
  NextTile(const HostAttention &attention, const FewRowsMemory &memory,
           const RowGroup &group, const HeadTile &tile, int64_t columns);

  /// Rows of memory that are prefetched beside the pieces of a field. The field
  /// has parts of some pieces, beside each of which as many rows are prefetched
  /// line after line, so that memory is always busy.
  struct Rows {
    SmallVector<Value> rows;
    int64_t size, width;
  };
  /// Finds what is prefetched beside the pieces of a field of keys, or of the
  /// values. Rows that are less or more than those pieces are prefetched at
  /// once.
  Rows startWithKeys(const HeadField &field, const TileColumns &all) const;
  Rows startWithValues(const TileColumns &all) const;
  /// Prefetches what is beside the piece at `d`.
  void prefetchPiece(const Rows &next, Value d) const;

private:
  Rows start(const TileColumns &all, bool isForKeys,
             ArrayRef<const HeadField *> fields) const;
  /// The place of the next tile that is prefetched for column `j`. Groups after
  /// the first of a head, and columns without a token, get `current`, which is
  /// in a cache of the CPU already.
  Place getPlace(Value j, const Place &current) const;

  const HostAttention &attention;
  const Frame &frame;
  const FewRowsMemory &memory;
  const RowGroup &group;
  const HeadTile &tile;
  /// Columns of a step, and those of them that are prefetched with keys.
  int64_t columns, columnsForKeys;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_NEXTTILE_H
