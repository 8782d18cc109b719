//===- TokenScales.h - Scales of the tokens of raw tiles --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSCALES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSCALES_H

#include "FragmentBuilder.h"
#include "TileRows.h"
#include "TiledCache.h"

namespace mlir::kvcache {

/// The values that a lane loads of its tokens in a tile: for each of them its
/// row of the tile, and values.
struct LaneTokens {
  Value tile;
  SmallVector<std::pair<Value, SmallVector<Value>>> tokens;
};

/// Loads values of the tokens of a lane in a tile, from a row on each. Where
/// the condition does not hold, they are zeros; a null one holds.
LaneTokens loadLaneTokens(const TileRows &block, Value tile, Value condition,
                          ValueRange zeros,
                          function_ref<SmallVector<Value>(Value row)> load);

/// Numbers of the groups of a token.
enum class GroupNumbers { Scales, ZeroPoints };

/// The scales of the tokens of a tile, those of the tile in use and of the next
/// one, in shared memory. Each warp has its own. A token has a scale for each
/// group of elements. Zero points are likewise.
class TokenScales {
public:
  /// The scales of `size` elements of a row of a cache, or their zero points.
  TokenScales(const TileRows &block, Value cache, int64_t size,
              GroupNumbers kind = GroupNumbers::Scales);

  /// The groups of elements that have scales of their own; 0 without scales, or
  /// without zero points.
  int64_t countGroups() const { return groups; }

  void allocate();
  /// The scales of all groups of a lane's tokens.
  using Loaded = LaneTokens;
  /// Loads the scales of a tile that begins at a token. Where the condition
  /// does not hold, they are 0; a null one holds.
  Loaded load(const TiledCache &tiles, Value tile, Value firstToken,
              Value condition) const;
  /// Stores scales, those of a group times a factor of its own if there are
  /// factors. Barriers are the caller's.
  void store(const Loaded &loaded, ValueRange factors = {}) const;
  /// Loads the scales of a group as elements of a fragment: those of a token
  /// are a column.
  Value loadFragment(const FragmentBuilder &b, FragmentType type, Value tile,
                     int64_t group) const;

private:
  /// The number of the row of shared memory with the scales of a group.
  Value getRow(Value tile, int64_t group) const;
  /// The scales of a token, of all groups.
  SmallVector<Value> loadToken(const TiledCache &tiles, Value tile,
                               Value firstToken, Value row) const;

  const TileRows &block;
  const Frame &frame;
  Value cache;
  GroupNumbers kind;
  int64_t groups, warps;
  /// A row for each group of a tile of a warp.
  Value scales;
};

/// Powers of two that scales of values are multiplied by.
///
/// Probs of f16 times any scales could be infinite, or vanish. So there is a
/// power for each group of elements, with which the scales of all tiles so far
/// are below 1, unless they are larger than 2^126. When a larger scale is
/// found, the power falls, and accumulators of tiles before are multiplied by
/// the change. At the end they are multiplied by 1 / power. All lanes of a warp
/// have the same numbers.
class ScalePowers {
public:
  explicit ScalePowers(const Frame &frame) : frame(frame) {}

  /// Returns the first power.
  Value getFirst() const;
  /// Returns the power with the scales of a group of a tile.
  Value include(Value power, const TokenScales::Loaded &loaded,
                int64_t group) const;
  Value invert(Value power) const;

private:
  Value toBits(Value number) const;
  Value toFloat(Value bits) const;
  /// The bits of 2^n / 2^e, of the bits of 2^e, by those of 2^n for 2^0.
  Value divide(int64_t exponents, Value bits) const;

  const Frame &frame;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSCALES_H
