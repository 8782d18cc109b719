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

TokenSplit TokenSplit::find(TileRows &block, const TileWork &work) {
  const Frame &frame = block.frame;
  Value tokens = block.countTokens(block.tokens.all);
  Value size = block.getPartSize(work.isWhole, tokens, block.plan.tokens);
  Value count = block.getPartCount(tokens, size);
  Value number = arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                         frame.index(0), work.part);
  return {number, count, size};
}

void TokenSplit::take(TileRows &block) const {
  const Frame &frame = block.frame;
  TokenRange &all = block.tokens.all;
  all.from = frame.add(all.from, frame.mul(number, size));
  all.to = frame.min(all.to, frame.add(all.from, size));
}
