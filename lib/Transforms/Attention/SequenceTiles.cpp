//===- SequenceTiles.cpp - Tiles of the rows of sequences -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SequenceTiles.h"

using namespace mlir;
using namespace mlir::kvcache;

Value SequenceTiles::count(Value rows) const {
  Value whole = frame.div(rows, perTile);
  return frame.add(frame.mul(whole, frame.min(batch, frame.index(1))), batch);
}

Value SequenceTiles::getFirst(Value sequence) const {
  Value row = frame.loadNumber(rowOffsets, sequence);
  return frame.add(frame.div(row, perTile), sequence);
}

SequenceTile SequenceTiles::find(Value tile) const {
  Value sequence = frame.findLast(batch, [&](Value candidate) {
    return frame.below(tile, getFirst(candidate));
  });
  return {sequence, frame.sub(tile, getFirst(sequence))};
}
