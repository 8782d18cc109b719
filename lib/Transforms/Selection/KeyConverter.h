//===- KeyConverter.h - Keys of 4 bits as elements of products --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_KEYCONVERTER_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_KEYCONVERTER_H

#include "ScoreStage.h"

namespace mlir::kvcache {

/// Converts keys of 4 bits: a warp loads those of its rows of a tile, without
/// scales, and stores them to the tile as elements of products.
class KeyConverter {
public:
  KeyConverter(IndexScoresOp op, const Frame &frame, const KeyTiles &tiles,
               const ScoreWork &work)
      : op(op), frame(frame), tiles(tiles), work(work) {}

  /// The types of what a thread loads.
  SmallVector<Type> getTypes() const;
  /// Loads the keys of a tile from an entry on.
  SmallVector<Value> load(Value firstEntry);
  /// Stores the keys. All lanes of a warp call it, and may then load its rows.
  void store(ValueRange loaded, Value tile) const;

private:
  /// The row and the first column of a run of a thread in its tile.
  ValuePair getPlace(int64_t run) const;

  IndexScoresOp op;
  const Frame &frame;
  KeyTiles tiles;
  const ScoreWork &work;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_KEYCONVERTER_H
