//===- RowPosition.cpp - The position of a row in its sequence ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowPosition.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/QueryOps.h"

using namespace mlir;
using namespace mlir::kvcache;

RowPosition RowPosition::find(const Frame &frame,
                              const PositionOperands &operands, Value row) {
  return find(frame, operands, row,
              frame.findSequence(operands.rowOffsets, row));
}

RowPosition RowPosition::find(const Frame &frame,
                              const PositionOperands &operands, Value row,
                              Value sequence) {
  frame.checkFirst(sequence, "sequence", {{"lengths", operands.lengths}});
  Value length = operands.lengths
                     ? frame.loadNumber(operands.lengths, sequence)
                     : CacheLengthOp::create(frame.builder, frame.loc,
                                             operands.cache, sequence)
                           .getResult();
  Value first = frame.loadNumber(operands.rowOffsets, sequence);
  Value own = frame.add(frame.sub(row, first), frame.index(1));
  return {sequence, frame.add(length, own), length};
}

void kvcache::checkColumns(const Frame &frame, Value scores, Value used) {
  if (!frame.hasChecks)
    return;
  Value columns =
      frame.dim(scores, cast<MemRefType>(scores.getType()).getRank() - 1);
  CheckOp::create(frame.builder, frame.loc, used,
                  frame.add(columns, frame.index(1)),
                  "number of columns that a row of 'scores' needs");
}
