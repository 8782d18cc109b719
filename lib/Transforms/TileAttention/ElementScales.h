//===- ElementScales.h - Scales of elements of 4 bits ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ELEMENTSCALES_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ELEMENTSCALES_H

#include "TokenScales.h"

namespace mlir::kvcache {

/// The scales that elements of NVFP4 are multiplied by in registers, of the
/// tile in use and of the next one, in shared memory as f16. Each warp has its
/// own. A row has those of a token, in the order of `fragment_mma`. They are
/// multiplied by 2^7, so that elements are 2^-7 of their values: more would be
/// beyond f16. Other elements of 4 bits have no such scales.
class ElementScales {
public:
  /// The scales of `size` elements of a row of a cache.
  ElementScales(const TileRows &block, Value cache, int64_t size);

  /// Whether elements are multiplied by scales.
  bool areNeeded() const { return groups; }
  /// Whether elements of the cache have 4 bits.
  bool arePacked() const;
  /// The inverse of the power of two that elements of products are multiplied
  /// by.
  float getInversePower() const;

  void allocate();
  /// Loads the scales of a tile that begins at a token. Where the condition
  /// does not hold, they are 0; a null one holds.
  LaneTokens load(const TiledCache &tiles, Value tile, Value firstToken,
                  Value condition) const;
  /// Stores scales. Barriers are the caller's.
  void store(const LaneTokens &loaded) const;
  /// The elements of a tile, with their scales if these are needed.
  PackedElements get(Value tile) const;

private:
  Type getElement() const;
  /// The type of words in which the scales of a token wait in registers.
  VectorType getWords() const;
  void storeToken(Value words, Value row) const;

  const TileRows &block;
  const Frame &frame;
  Value cache;
  int64_t groups, warps;
  Value scales;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ELEMENTSCALES_H
