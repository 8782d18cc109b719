//===- Source.h - Rows of the cache that a copy reads -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_SOURCE_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_SOURCE_H

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/IndexBuilder.h"

namespace mlir::kvcache {

/// A row of the cache that becomes one of the tile.
struct SourceRow {
  /// Whether to read the row; null if always.
  Value isValid;
  Value batch, token;
  /// The page, if it is known without the lookup table; else null. If the row
  /// is not valid, this is any page, and the token any of its rows.
  Value page;
};

/// The rows of the cache that a copy reads.
class Source {
public:
  Source(const IndexBuilder &b, TileCopyOpInterface copy) : b(b), copy(copy) {}

  TypedValue<CacheTypeInterface> getCache() { return copy.getAccessedCache(); }
  Value getHead() { return copy.getAccessedHead(); }
  TypedValue<TileType> getTile() { return copy.getTile(); }
  tma::TileLayout getLayout() { return copy.getTileLayout(); }

  /// The source of a row of the tile.
  SourceRow getRow(Value row);
  /// The sources of `count` rows of the tile, each `distance` after the one
  /// before. Reads all their row ids at once, with wide loads.
  SmallVector<SourceRow> getRows(Value first, int64_t count, int64_t distance);

  /// The row ids, i32, of `count` rows of the tile from `first` on, a multiple
  /// of `count`.
  SmallVector<Value> getIds(Value first, int64_t count);
  /// The number of row ids that one access can read; 1 without row ids.
  int64_t getIdsPerAccess();
  /// Whether a row id names a row of the cache.
  Value isRow(Value id);

  /// Elements of the head from `column` of the tile on.
  Value getElementAt(Value column);
  /// `columns` stored elements of a row from a column of the tile on, as a
  /// memref of one row. The page may be null.
  Value getMemory(const SourceRow &row, Value column, int64_t columns,
                  Value page);
  /// The page of a row, looked up only if the row is valid, because its table
  /// entry need not exist otherwise. Null if every row is valid.
  Value getSafePage(const SourceRow &row);

private:
  SourceRow getGathered(Value id);
  Value getExtent(Extent extent);

  IndexBuilder b;
  TileCopyOpInterface copy;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_SOURCE_H
