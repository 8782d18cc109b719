//===- TiledCache.h - Tiles of the tokens of a cache ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEDCACHE_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEDCACHE_H

#include "TileIds.h"

namespace mlir::kvcache {

/// Tokens of which a block reads tiles.
struct TiledTokens {
  /// The sequence, and the head of its caches.
  Value batch, head;
  TokenRange all;
  /// What the first tokens of tiles are multiples of.
  int64_t alignment = 1;
  /// The ids of sparse rows, of which tokens are columns; null without them.
  const TileIds *ids = nullptr;
};

/// Tiles of the keys or values of a head in shared memory, a row for each
/// token. Copies bring them through a pipe if the tile has the elements of the
/// cache in whole rows. Otherwise, threads convert elements.
class TiledCache {
public:
  /// Tiles of `tokens` rows, with `size` elements of type `lane`; copies have
  /// so many stages. `threads` threads of a block convert, with at most `loads`
  /// loads of each under way. With `unscaled`,
  /// tiles have elements without the scales of their tokens.
  TiledCache(const Frame &frame, Value cache, FloatType lane, int64_t size,
             int64_t tokens, int64_t stages, int64_t threads, int64_t loads,
             bool unscaled);

  FloatType getLane() const { return lane; }
  bool isCopied() const { return isCopied(getType(), lane); }
  /// Whether copies bring tiles of a cache with elements of type `lane`.
  static bool isCopied(CacheTypeInterface cache, FloatType lane);
  bool isUnscaled() const { return unscaled; }

  void allocate();
  /// Starts copies of the tile that begins at a token, in a use of the pipe.
  void copy(Value use, Value tile, Value token,
            const TiledTokens &tokens) const;
  /// Stores a tile that is not copied. Behind the last token, it has the last
  /// again, and where there is no sparse row, zeros. Barriers around it are the
  /// caller's.
  void fill(Value thread, Value tile, Value token,
            const TiledTokens &tokens) const;
  /// Runs `body` with a tile, that of a use of the pipe.
  SmallVector<Value> use(Value number, size_t numResults,
                         function_ref<SmallVector<Value>(Value)> body) const;
  /// Multiplies scores or weights of a lane by the scales of their tokens: for
  /// each 8 tokens, those of `column` and the next one for each of two rows.
  void scale(MutableArrayRef<Value> scores, Value column) const;

private:
  /// Elements of a row of a tile, from `d` on.
  struct Unit {
    Value row, d, elements;
  };

  CacheTypeInterface getType() const;
  /// What a tile has of the tokens from one on.
  struct Source {
    Value tile, first;
    const TiledTokens &tokens;
  };
  /// The place of a row of a tile, and whether there is one; null if always.
  std::pair<Place, Value> getPlace(const Source &source, Value row) const;
  Unit loadUnit(const Source &source, int64_t width, Value number) const;
  void storeUnit(const Unit &unit) const;
  /// Loads the scales of the tokens, and returns a function that stores them.
  std::function<void()> loadScales(Value thread, const Source &source) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  Value cache;
  FloatType lane;
  int64_t size, tokensOfTile, stages, threads, mostLoads;
  bool unscaled;
  /// A pipe of tiles that copies fill, or a tile that threads fill and the
  /// scales of its tokens.
  Value pipe, tile, scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILEDCACHE_H
