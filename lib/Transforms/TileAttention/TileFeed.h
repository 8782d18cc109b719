//===- TileFeed.h - Tiles of keys and values in time ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEFEED_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEFEED_H

#include "FragmentBuilder.h"
#include "TileSource.h"
#include "TiledCache.h"
#include "WorkItems.h"

namespace mlir::kvcache {

/// Brings tiles of keys and values into shared memory, for a block whose
/// threads all copy and multiply. Copies start some tiles ahead. Where they do
/// not bring elements as products need them, the threads convert these.
class TileFeed : public TileSource {
public:
  /// If `hasShared`, lanes store other numbers for each tile, too.
  TileFeed(TileRows &block, const FragmentBuilder &b, const WorkItems &items,
           bool hasShared = false);

  void allocate();
  /// Starts the copies of the first of `count` tiles.
  void start(Value count);
  /// Also starts the next copies.
  void begin(Value tile) override;
  void end() override;
  /// Starts the copies that `begin` has not, while a product of the tile is
  /// computed: those of products that read tiles by themselves.
  void copyMeanwhile(Value tile) const;

  SmallVector<Value> useKeys(Value tile, TypeRange types,
                             Body body) const override;
  SmallVector<Value> useValues(Value tile, TypeRange types,
                               Body body) const override;
  bool areLatent() const override { return !block.getOp().getValueCache(); }

  /// Multiplies scores, or probs, by the scales of the tokens in the tile in
  /// use, unless its elements have these.
  Value scaleScores(Value scores) const override { return scale(keys, scores); }
  Value scaleProbs(Value probs) const {
    return scale(areLatent() ? keys : values, probs);
  }

  const TiledCache &getKeys() const { return keys; }
  const TiledCache &getValues() const { return values; }
  /// The elements of products with tiles.
  FloatType getKeyElement() const { return keys.getLane(); }
  FloatType getValueElement() const { return values.getLane(); }

private:
  /// The caches that have tiles.
  SmallVector<const TiledCache *> getSides() const;
  bool areCopied() const;
  bool hasCopies() const;
  /// Whether products read whole tiles by themselves, by the async proxy.
  bool readsTiles() const { return block.getConfig().mma != MmaKind::Sync; }
  /// Whether the next copies start while a product is computed. Tiles that all
  /// sides copy are then free.
  bool copiesMeanwhile(bool isRaw) const {
    return readsTiles() && (isRaw || areCopied());
  }

  using IsWanted = function_ref<bool(const TiledCache &)>;
  /// Copies a tile of those of keys and values that are wanted, if there is
  /// such a tile.
  void produce(Value tile, IsWanted isWanted) const;
  /// Starts the next copies, where the tile in use leaves no more room: of
  /// tiles, or of raw ones.
  void produceNext(Value tile, bool isRaw) const;
  void convert(Value tile) const;
  /// Loads the ids of the tile after those that copies are for, and returns a
  /// function that stores them.
  std::function<void()> loadNextIds(Value tile) const;
  Value scale(const TiledCache &side, Value elements) const;

  TileRows &block;
  const WorkItems &items;
  const Frame &frame;
  const FragmentBuilder &b;
  TiledCache keys, values;
  bool hasShared;
  /// The number of tiles.
  Value tiles;
  /// Stores numbers that wait in registers while a tile is used.
  std::function<void()> storeLoaded;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEFEED_H
