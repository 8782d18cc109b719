//===- TileList.h - The tiles that rows of a block see ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILELIST_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILELIST_H

#include "../Attention/TokenRange.h"
#include "../Builders/BlockArray.h"

namespace mlir::kvcache {

/// The numbers of those of a block's tiles that have a token that some row
/// sees, in shared memory. Only the first tiles are looked at; all later ones
/// are in the list.
class TileList {
public:
  explicit TileList(const Frame &frame) : frame(frame) {}

  void allocate();
  /// Makes the list of `count` tiles, and returns its length. All threads of
  /// the block call it; `classify` finds which tokens of a tile rows see.
  Value make(Value thread, int64_t threads, Value count,
             function_ref<AdmittedPairs(Value tile)> classify);

  /// The tile at a place of the list. After its end, it is any tile.
  Value getTile(Value place) const;
  /// Whether some row may not see all tokens of this tile.
  Value isPart(Value place) const;

private:
  /// Moves tiles that rows see to the front, and stores their number.
  void compact(Value lane, Value count);

  const Frame &frame;
  /// For each tile its number, and whether it is a part; then the length.
  std::optional<BlockArray> entries;
  /// The tiles of the list that were looked at.
  Value listed;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILELIST_H
