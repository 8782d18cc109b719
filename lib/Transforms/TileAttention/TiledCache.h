//===- TiledCache.h - Tiles of the tokens of a cache ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEDCACHE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEDCACHE_H

#include "GroupScales.h"
#include "TileIds.h"

namespace mlir::kvcache {

/// Orders the thread's accesses of shared memory before those of the async
/// proxy: copies, and products that read tiles.
void emitAsyncFence(const Frame &frame);

/// The widest swizzle for rows of so many elements of 16 bits, which matrix
/// instructions read.
Swizzle getMatrixSwizzle(int64_t columns);
/// A tile with that swizzle, whose columns are a multiple of 16.
TileType getMatrixTile(Type lane, int64_t rows, int64_t columns);

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

/// Tiles of the keys or values of a head in shared memory, a row for each
/// token. Copies bring them through a pipe if the tile has the elements of the
/// cache in whole rows. Otherwise, threads convert elements, which they load
/// from the cache, or from tiles of raw elements that copies bring.
class TiledCache {
public:
  /// Tiles of the keys or the values of an op, with `size` elements of a row.
  TiledCache(const Frame &frame, AttentionOp op, Value cache, int64_t size,
             const TilePlan &plan);

  FloatType getLane() const { return lane; }
  /// Whether copies bring tiles of a cache of the op.
  bool isCopied() const { return copied; }
  static bool isCopied(AttentionOp op, Value cache);
  /// Whether copies bring raw elements, or could bring them.
  bool isRaw() const { return raw; }
  static bool canBeRaw(AttentionOp op, Value cache);
  /// The bytes of raw tiles of so many tokens, where rows are in two caches.
  static int64_t countPairBytes(AttentionOp op, int64_t tokens, int64_t tiles);
  /// Whether tiles have elements without the scales of their tokens.
  bool isUnscaled() const { return unscaled; }
  /// Whether warps can multiply raw elements of a row, which copies bring.
  static bool canMultiplyRaw(Value cache, int64_t size);
  static bool isUnscaled(AttentionOp op, Value cache);
  bool hasCopies() const { return copied || raw; }
  /// Tiles whose copies are under way while one is used.
  int64_t countAhead() const;

  void allocate();
  /// The pipe of tiles that copies fill, if there is one.
  Value getPipe() const { return pipe; }
  /// Starts copies of the tile that begins at a token, in a use of the pipe.
  void copy(Value use, Value tile, Value token,
            const TiledTokens &tokens) const;
  /// Stores a tile that is not copied, from raw elements in a use of the pipe
  /// if there are any. Before the first token that is seen, it has that one
  /// again, and after the last the last, or with raw elements zeros. Where
  /// there is no sparse row, it has zeros. Barriers around it are the caller's.
  void fill(Value thread, Value use, Value tile, Value token,
            const TiledTokens &tokens) const;
  /// Whether `fill` reads scales of groups from shared memory.
  bool hasGroupScales() const { return groupScales.has_value(); }
  /// Loads those of a tile, and returns a function that stores them.
  std::function<void()> loadGroupScales(Value thread, Value tile, Value token,
                                        const TiledTokens &tokens) const;
  /// Stores zeros into the rows of tiles that copies brought before the first
  /// token that is seen, and synchronizes the threads if there are any: the
  /// thread block, or by a named barrier those that multiply. A weight of zero
  /// times a value that is not finite would be NaN.
  void clearUnseen(Value thread, ValueRange copiedTiles, Value firstToken,
                   const TiledTokens &tokens,
                   std::optional<int64_t> barrier = std::nullopt) const;
  /// Runs `body`, whose results have these types, with a tile: that of a use of
  /// the pipe.
  SmallVector<Value> use(Value number, TypeRange types,
                         function_ref<SmallVector<Value>(Value)> body) const;
  /// The scale of a token of the tile, in f32.
  Value getScale(Value column) const;

  /// The place of a row of a tile that begins at a token, and whether there is
  /// one; null if always.
  std::pair<Place, Value> getPlace(Value tile, Value token,
                                   const TiledTokens &tokens, Value row) const;

private:
  SmallVector<Value>
  useOfPipe(Value number, TypeRange types,
            function_ref<SmallVector<Value>(ValueRange)> body) const;
  /// Elements of a row of a tile, from `d` on.
  struct Unit {
    Value row, d, elements;
  };

  CacheTypeInterface getType() const;
  /// The tokens of a tile, from one on.
  struct Source {
    Value tile, first;
    const TiledTokens &tokens;
  };
  std::pair<Place, Value> getPlace(const Source &source, Value row) const {
    return getPlace(source.tile, source.first, source.tokens, row);
  }
  /// The columns of a tile whose elements are those of one cache.
  struct Field {
    Value cache;
    int64_t first, size;
  };
  /// Returns the fields of the cache, and of its rope if there is one.
  SmallVector<Field> getFields() const;
  /// Copies the tokens from one on, or those of ids, into a tile.
  void copyField(Value from, Value target, Value tile, Value token,
                 const TiledTokens &tokens) const;
  /// Stores zeros into the first rows of a tile.
  void clearRows(Value thread, Value copiedTile, Value rows) const;
  /// Stores the elements of a field, which threads load from its cache.
  void fillField(Value thread, const Source &source, const Field &field) const;
  /// Unit `number` of the elements of a field in its cache, or in a raw tile.
  Unit loadUnit(const Source &source, const Field &field, int64_t width,
                Value number) const;
  Unit loadRawUnit(Value rawTile, Value number) const;
  /// Stores the elements of all fields, from their raw tiles.
  void fillFromPair(Value thread, ValueRange rawTiles, Value tile) const;
  TileType getRawTile() const;
  TileType getRawTile(Swizzle swizzle) const;
  /// The swizzle of raw tiles that have one.
  Swizzle getRawSwizzle() const;
  /// Stores all units of so many columns of a tile, of `width` elements.
  void storeUnits(Value thread, int64_t columns, int64_t width,
                  int64_t mostLoads,
                  function_ref<Unit(Value number)> load) const;
  void storeUnit(const Unit &unit) const;
  /// Loads the scales of the tokens, and returns a function that stores them.
  std::function<void()> loadScales(Value thread, const Source &source) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  Value cache, rope;
  FloatType lane;
  int64_t size, tokensOfTile, stages, producers, threads, mostLoads;
  bool unscaled, gathered, copied, raw, multipliesRaw;
  /// The scales of the groups of raw tiles of rows in two caches.
  std::optional<GroupScales> groupScales;
  EvictionAttr hint;
  /// A pipe of tiles that copies fill, and a tile that threads fill and the
  /// scales of its tokens.
  Value pipe, tile, scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEDCACHE_H
