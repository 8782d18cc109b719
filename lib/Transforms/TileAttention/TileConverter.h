//===- TileConverter.h - Tiles that threads convert -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILECONVERTER_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILECONVERTER_H

#include "GroupScales.h"
#include "TileShape.h"

namespace mlir::kvcache {

/// A tile whose elements threads convert: they load them from the cache, or
/// from raw tiles that copies bring.
class TileConverter {
public:
  /// Raw tiles have scales of groups if rows are in two caches.
  TileConverter(const Frame &frame, const TileShape &shape, int64_t mostLoads,
                bool isRaw);

  bool hasGroupScales() const { return groupScales.has_value(); }
  const GroupScales &getGroupScales() const { return *groupScales; }

  /// The tiles of a pipe that brings raw elements.
  SmallVector<Type> getRawTiles() const;
  void allocateGroupScales() { groupScales->allocate(); }
  /// Allocates the tile, and the scales of its tokens.
  void allocate();
  /// The tile; null before it is allocated.
  Value getTile() const { return tile; }

  /// Loads the scales of the tokens, and returns a function that stores them.
  std::function<void()> loadScales(Value thread,
                                   const TileTokens &tokens) const;
  /// The scale of a token of the tile, in f32.
  Value getScale(Value column) const;

  /// Stores the elements, which threads load from the caches.
  void fillFromCaches(Value thread, const TileTokens &tokens) const;
  /// Stores the elements, from raw tiles of each field. `number` is the
  /// number of the tile whose scales of groups they have.
  void fillFromRaw(Value thread, ValueRange rawTiles, Value number) const;

private:
  /// Elements of a row of a tile, from `d` on.
  struct Granule {
    Value row, d, elements;
  };
  /// Granule `number` of the elements of a field in its cache, or in a raw
  /// tile.
  Granule loadGranule(const TileTokens &tokens, const TileField &field,
                      int64_t width, Value number) const;
  Granule loadRawGranule(Value rawTile, Value number) const;
  /// Likewise, of a field of two.
  Granule loadFieldGranule(const TileField &field, Value rawTile,
                           Value tileNumber, Value number) const;
  /// Stores all granules of so many columns of a tile, of `width` elements.
  void storeGranules(Value thread, int64_t columns, int64_t width,
                     int64_t loadsAtOnce,
                     function_ref<Granule(Value number)> load) const;
  void storeGranule(const Granule &granule) const;

  const Frame &frame;
  const TileShape &shape;
  /// Loads of a thread that are under way at once.
  int64_t mostLoads;
  bool isRaw;
  /// The scales of the groups of raw tiles of rows in two caches.
  std::optional<GroupScales> groupScales;
  /// The tile, and the scales of its tokens.
  Value tile, scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILECONVERTER_H
