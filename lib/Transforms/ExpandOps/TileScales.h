//===- TileScales.h - Scales of the tokens of raw tiles ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILESCALES_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILESCALES_H

#include "TiledCache.h"

namespace mlir::kvcache {

/// The scales of the tokens of a tile, those of the tile in use and of the next
/// one, in shared memory. Each warp has its own.
///
/// Weights of f16 times any scales could be infinite, or vanish. So the scales
/// of values are multiplied by a power of two, `unit`, for each group of
/// elements: those of all tiles so far are then below 1, unless they are
/// larger than 2^126. Sums of tiles before are multiplied by `change` when a
/// larger scale is found, and by 1 / `unit` at the end. A warp has as many of
/// both as there are groups.
class TileScales {
public:
  /// The scales of `size` elements of a row of a cache.
  TileScales(const Frame &frame, Value cache, int64_t size,
             const TilePlan &plan, bool hasUnits);

  /// The groups of elements that have scales of their own; 0 without scales.
  int64_t countGroups() const { return groups; }
  /// The units and changes of a warp, for all groups.
  int64_t countUnits() const { return hasUnits ? groups : 0; }
  SmallVector<Value> getFirstUnits() const;
  /// What sums of a group are multiplied by at the end, by its unit.
  Value invert(Value unit) const;

  void allocate();
  /// Loads the scales of a tile, and returns a function that stores them, and
  /// updates units and then changes. Barriers are the caller's. Where the
  /// condition does not hold, scales are 0; a null one holds.
  std::function<void(MutableArrayRef<Value> units)>
  load(Value thread, const TiledCache &tiles, Value tile, Value token,
       const TiledTokens &tokens, Value condition) const;
  /// The scales of a group, of two tokens from one on.
  std::pair<Value, Value> get(Value thread, Value tile, int64_t group,
                              Value token) const;

private:
  /// The scales of a token, of all groups.
  SmallVector<Value> loadToken(const TiledCache &tiles, Value tile, Value token,
                               const TiledTokens &tokens, Value row) const;
  SmallVector<Value> loadIf(Value condition,
                            function_ref<SmallVector<Value>()> load) const;
  Value getRow(Value thread, Value tile, int64_t group) const;
  Value toBits(Value number) const;
  Value toFloat(Value bits) const;
  /// The bits of 2^n / 2^e, of the bits of 2^e, by those of 2^n for 2^0.
  Value divide(int64_t exponents, Value bits) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  Value cache;
  int64_t groups, tokensOfTile, warps;
  bool hasUnits;
  /// A row for each group of a tile of a warp.
  Value scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_TILESCALES_H
