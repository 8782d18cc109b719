//===- BlockRows.cpp - Query rows of a block ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRows.h"

using namespace mlir;
using namespace mlir::kvcache;

RowsPlace RowsPlace::find(const KernelContext &kernel, const TileWork &work) {
  const Frame &frame = kernel.frame;
  Value first = frame.mul(work.number, kernel.shape.perBlock);
  return {loadRows(frame, kernel.getOp(), work.sequence), first};
}

BlockRows BlockRows::load(const KernelContext &kernel, const TileWork &work,
                          const RowsPlace &place) {
  const Frame &frame = kernel.frame;
  AttentionOp op = kernel.getOp();
  BlockRows block{work, {}, place.first, {}};
  if (op.getRows()) {
    block.sequence = getSparseRow(
        frame, op, frame.add(place.sequence.first, place.first), work.columns);
    block.first = frame.index(0);
  } else {
    block.sequence = loadRowsAndTokens(frame, op, work.sequence);
  }
  block.count = frame.min(frame.sub(block.sequence.count, block.first),
                          frame.index(kernel.shape.perBlock));
  return block;
}

SeenTokens BlockRows::findTokens(const KernelContext &kernel) const {
  const Frame &frame = kernel.frame;
  int64_t perBlock = kernel.shape.perBlock;
  // Few rows are looked at faster by each thread.
  constexpr int64_t few = 8;
  Value lane = perBlock > few ? frame.rem(work.thread, kWarp) : Value();
  return BlockTokens(frame, kernel.getOp(), *kernel.config.keys, perBlock)
      .find(sequence, first, count, lane);
}
