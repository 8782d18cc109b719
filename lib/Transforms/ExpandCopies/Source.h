//===- Source.h - Where the rows of a copy come from ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_SOURCE_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_SOURCE_H

#include "kvcache/IR/KVCache.h"
#include "kvcache/Support/IndexBuilder.h"

namespace mlir::kvcache {

/// A row of the cache that becomes one of the tile.
struct SourceRow {
  /// Whether the row is to be read; null if it surely is.
  Value isValid;
  Value batch, token;
  /// The page, if it is known without the lookup table. Where the row is not
  /// valid it is some page, and the token one of its rows.
  Value page;
};

/// The copy, whichever it is.
class Source {
public:
  Source(const IndexBuilder &b, Operation *copy)
      : b(b), load(dyn_cast<AsyncLoadTileOp>(copy)),
        gather(dyn_cast<AsyncGatherTileOp>(copy)) {}

  TypedValue<CacheTypeInterface> getCache() {
    return load ? load.getCache() : gather.getCache();
  }
  Value getHead() { return load ? load.getHead() : gather.getHead(); }
  Value getElement() { return load ? load.getElement() : gather.getElement(); }
  TypedValue<TileType> getTile() {
    return load ? load.getTile() : gather.getTile();
  }
  tma::TileLayout getLayout() { return getTile().getType().getLayout(); }

  /// Where a row of the tile comes from.
  SourceRow getRow(Value row);
  /// Where `count` rows of the tile come from, each `distance` after the one
  /// before. What they take of tables is read at once, and wide.
  SmallVector<SourceRow> getRows(Value first, int64_t count, int64_t distance);

  /// The row ids, i32, that the gather has for `count` rows of the tile from
  /// `first` on, a multiple of `count`.
  SmallVector<Value> getIds(Value first, int64_t count);
  /// How many row ids one access can read; 1 where there are none.
  int64_t getIdsPerAccess();
  /// Whether a row id is that of a row of the cache.
  Value isRow(Value id);

  /// Elements of the head from `column` of the tile on.
  Value getElementAt(Value column);
  /// `columns` stored elements of a row from a column of the tile on, as a
  /// memref of one row. The page may be null.
  Value getMemory(const SourceRow &row, Value column, int64_t columns,
                  Value page);
  /// The page of a row, looked up only if the row is valid: its entry of the
  /// table need not exist otherwise. Null if it is to be looked up any way.
  Value getSafePage(const SourceRow &row);

private:
  SourceRow getGathered(Value id);
  Value getExtent(Extent extent);

  const IndexBuilder &b;
  AsyncLoadTileOp load;
  AsyncGatherTileOp gather;
};

/// The bytes that fill the tile of a copy.
int64_t getTileBytes(Operation *copy);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_SOURCE_H
