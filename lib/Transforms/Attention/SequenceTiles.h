//===- SequenceTiles.h - Tiles of the rows of sequences ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_SEQUENCETILES_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_SEQUENCETILES_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// A tile of the rows of a sequence: its number in the sequence.
struct SequenceTile {
  Value sequence, number;
};

/// Tiles of `perTile` rows, which are of one sequence. Those of a sequence
/// begin at `its first row / perTile + its number`, so some have no rows.
class SequenceTiles {
public:
  SequenceTiles(const Frame &frame, Value rowOffsets, int64_t perTile)
      : frame(frame), rowOffsets(rowOffsets), perTile(perTile),
        batch(frame.countSequences(rowOffsets)) {}

  Value countSequences() const { return batch; }
  /// The number of tiles, at most, of `rows` rows.
  Value count(Value rows) const;
  /// Finds the sequence of a tile.
  SequenceTile find(Value tile) const;

private:
  Value getFirst(Value sequence) const;

  const Frame &frame;
  Value rowOffsets;
  int64_t perTile;
  Value batch;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_SEQUENCETILES_H
