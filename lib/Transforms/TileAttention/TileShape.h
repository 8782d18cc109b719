//===- TileShape.h - The tiles of a cache, and their tokens -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESHAPE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESHAPE_H

#include "../Builders/Heads.h"
#include "../PlanAttention/TileSizes.h"
#include "TileIds.h"

namespace mlir::kvcache {

/// The widest swizzle for rows of so many elements of 16 bits, which matrix
/// instructions read.
Swizzle getMatrixSwizzle(int64_t columns);
/// A tile with that swizzle, whose columns are a multiple of 16.
TileType getMatrixTile(Type lane, int64_t rows, int64_t columns);

/// The columns of a tile whose elements are those of one cache.
struct TileField {
  Value cache;
  int64_t first, size;

  CacheTypeInterface getType() const {
    return cast<CacheTypeInterface>(cache.getType());
  }
};

/// Tiles of the keys or values of a head: a row for each token.
struct TileShape {
  /// Tiles of the keys or the values of an op, with `size` elements of a row.
  TileShape(AttentionOp op, Value cache, int64_t size,
            const AttentionConfig &config);

  /// The fields of the cache, and of its rope if there is one.
  SmallVector<TileField> getFields() const;
  /// The tile that products read, and tiles of the elements of the cache.
  TileType getTile() const { return getMatrixTile(lane, tokens, size); }
  TileType getRawTile(Swizzle swizzle) const;
  /// The swizzle of raw tiles that have one.
  Swizzle getRawSwizzle() const;
  /// The raw tile that copies bring on a target.
  TileType getCopiedRawTile(const Target &target) const;

  Value cache, rope;
  /// The elements of products.
  FloatType lane;
  int64_t size, tokens;
  /// Threads that fill tiles.
  int64_t threads;
  /// Whether tiles have elements without the scales of their tokens, rows are
  /// sparse, and warps multiply raw elements.
  bool unscaled, gathered, multipliesRaw;
  EvictionAttr hint;
};

/// Tokens of which a block reads tiles.
struct TiledTokens {
  /// The sequence, and the head of its caches.
  Value batch, head;
  TokenRange all;
  /// The divisor of the first tokens of tiles.
  int64_t alignment = 1;
  /// The first token that is seen, if tiles may begin before it; otherwise
  /// null.
  Value begin;
  /// The ids of sparse rows, of which tokens are columns; null without them.
  const TileIds *ids = nullptr;
};

/// The tokens of a tile, from one on.
struct TileTokens {
  Value tile, first;
  const TiledTokens &tokens;

  /// The place of a row of the tile, and whether there is one; null if always.
  std::pair<Place, Value> getPlace(const Frame &frame, const TileShape &shape,
                                   Value row) const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILESHAPE_H
