//===- TilePipe.h - Tiles that copies bring ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEPIPE_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEPIPE_H

#include "TileShape.h"

namespace mlir::kvcache {

/// Orders the thread's accesses of shared memory before those of the async
/// proxy: copies, and products that read tiles.
void emitAsyncFence(const Frame &frame);

/// A pipe of tiles of a cache that copies bring.
class TilePipe {
public:
  /// `producers` warps do nothing but copy; 0 where all do.
  TilePipe(const Frame &frame, const TileShape &shape, int64_t stages,
           int64_t producers)
      : frame(frame), shape(shape), stages(stages), producers(producers) {}

  /// Allocates a tile of each type for each stage.
  void allocate(ArrayRef<Type> types);
  int64_t countStages() const { return stages; }
  /// The pipe; null before it is allocated.
  Value getPipe() const { return pipe; }

  /// Starts copies of the fields of a tile, in a use of the pipe.
  void copy(Value use, const TileTokens &tokens) const;
  /// Runs `body`, whose results have these types, with the tiles of a use.
  SmallVector<Value>
  use(Value number, TypeRange types,
      function_ref<SmallVector<Value>(ValueRange tiles)> body) const;
  /// Stores zeros into the rows of tiles that copies brought before the first
  /// token that is seen, and then runs `sync` if there are any. `threads`
  /// threads do so together. A probability of zero times a value that is not
  /// finite would be NaN.
  void clearUnseen(Value thread, int64_t threads, ValueRange copiedTiles,
                   Value firstToken, const TiledTokens &tokens,
                   function_ref<void()> sync) const;

private:
  /// Copies the tokens from one on, or those of ids, into a tile.
  void copyField(Value from, Value target, const TileTokens &tokens) const;
  /// Stores zeros into the first rows of a tile.
  void clearRows(Value thread, int64_t threads, Value copiedTile,
                 Value rows) const;

  const Frame &frame;
  const TileShape &shape;
  int64_t stages, producers;
  Value pipe;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEPIPE_H
