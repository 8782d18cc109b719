//===- TiledCache.h - Tiles of the tokens of a cache ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEDCACHE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEDCACHE_H

#include "TileConverter.h"
#include "TilePipe.h"

namespace mlir::kvcache {

/// Tiles of the keys or values of a head in shared memory, a row for each
/// token. Copies bring them through a pipe if the tile has the elements of the
/// cache in whole rows. Otherwise, threads convert elements, which they load
/// from the cache, or from tiles of raw elements that copies bring.
class TiledCache {
public:
  /// Tiles of the keys or the values of an op, with `size` elements of a row.
  TiledCache(const Frame &frame, AttentionOp op, Value cache, int64_t size,
             const AttentionConfig &config);
  // The pieces refer to each other.
  TiledCache(const TiledCache &) = delete;

  const TileShape &getShape() const { return shape; }
  FloatType getLane() const { return shape.lane; }
  /// Whether copies bring tiles, or raw elements, or either.
  bool isCopied() const { return copied; }
  bool isRaw() const { return raw; }
  bool hasCopies() const { return copied || raw; }
  /// Whether tiles have elements without the scales of their tokens.
  bool isUnscaled() const { return shape.unscaled; }
  /// Tiles whose copies are under way while one is used.
  int64_t countAhead() const;

  void allocate();
  /// The pipe of tiles that copies fill, if there is one.
  Value getPipe() const { return pipe.getPipe(); }
  /// Starts copies of a tile, in a use of the pipe.
  void copy(Value use, const TileTokens &tokens) const {
    pipe.copy(use, tokens);
  }
  /// Stores a tile that is not copied, from raw elements in a use of the pipe
  /// if there are any. Before the first token that is seen, it has that one
  /// again, and after the last the last, or with raw elements zeros. Where
  /// there is no sparse row, it has zeros. Barriers around it are the caller's.
  void fill(Value thread, Value use, const TileTokens &tokens) const;
  /// Whether `fill` reads scales of groups from shared memory.
  bool hasGroupScales() const { return converter.hasGroupScales(); }
  /// Loads those of a tile, and returns a function that stores them.
  std::function<void()> loadGroupScales(Value thread,
                                        const TileTokens &tokens) const;
  /// Stores zeros into the rows of a tile that copies brought before the first
  /// token that is seen, and synchronizes the thread block, or by a named
  /// barrier those that multiply.
  void clearUnseen(Value thread, ValueRange copiedTiles, Value firstToken,
                   const TiledTokens &tokens,
                   std::optional<int64_t> barrier = std::nullopt) const;
  /// Likewise by the lanes of a warp.
  void clearUnseenInWarp(Value lane, Value copiedTile, Value firstToken,
                         const TiledTokens &tokens) const;
  /// Runs `body`, whose results have these types, with a tile: that of a use of
  /// the pipe.
  SmallVector<Value> use(Value number, TypeRange types,
                         function_ref<SmallVector<Value>(Value)> body) const;
  /// The scale of a token of the tile, in f32.
  Value getScale(Value column) const { return converter.getScale(column); }

private:
  const Frame &frame;
  TileShape shape;
  bool copied, raw;
  TilePipe pipe;
  TileConverter converter;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEDCACHE_H
