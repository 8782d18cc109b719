//===- TileIds.h - Ids of the rows of tiles ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEIDS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEIDS_H

#include "../Attention/TokenRange.h"
#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The ids of the cache's rows that a query row sees, of some tiles, in shared
/// memory: copies, conversions and the mask read them there.
class TileIds {
public:
  /// For tiles of `tokens` rows, of which `tiles` have ids at the same time.
  /// `threads` threads of a block load them.
  TileIds(const Frame &frame, AttentionOp op, int64_t tokens, int64_t tiles,
          int64_t threads);

  void allocate();
  /// Loads the ids of a tile of some columns of a row and a head of the cache,
  /// and returns a function that stores them: -1 after the last column.
  /// Barriers are the caller's.
  std::function<void()> load(Value thread, Value row, Value head, Value tile,
                             const TokenRange &columns) const;

  /// The ids of a tile, as the operand of a gather.
  Value getMemory(Value tile) const;
  /// The ids of a tile from one on: a vector of them, or one if `count` is 1.
  Value get(Value tile, Value first, int64_t count) const;
  /// Whether an id is a row's.
  Value isRow(Value id) const;

private:
  /// With checks, the page of an id exists.
  void check(Value id) const;

  Frame frame;
  OpBuilder &builder;
  Location loc;
  Value rows, keys, values, rope;
  int64_t tokens, tiles, threads;
  /// The ids: a row for each of some tiles.
  Value ids;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEIDS_H
