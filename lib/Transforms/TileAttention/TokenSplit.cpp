//===- TokenSplit.cpp - The split of tokens of a block --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenSplit.h"

using namespace mlir;
using namespace mlir::kvcache;

TokenSplit TokenSplit::find(const TileRows &block) {
  const Frame &frame = block.getFrame();
  const KeySplits &splits = block.grid.splits;
  const TileWork &work = block.work;
  Value tokens = countTokens(frame, block.tokens.all);
  Value size = splits.getSize(work.isWhole, tokens, *block.getConfig().keys);
  Value count = splits.getCount(tokens, size);
  Value number = arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                         frame.index(0), work.split);
  return {number, count, size};
}

void TokenSplit::take(TileRows &block) const {
  const Frame &frame = block.getFrame();
  TokenRange &all = block.tokens.all;
  all.from = frame.add(all.from, frame.mul(number, size));
  all.to = frame.min(all.to, frame.add(all.from, size));
}
