//===- TokenSplit.cpp - The split of the tokens of a block ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenSplit.h"

using namespace mlir;
using namespace mlir::kvcache;

TokenSplit TokenSplit::find(const KernelContext &kernel, const TileWork &work,
                            const SeenTokens &seen) {
  const Frame &frame = kernel.frame;
  Value tokens = countTokens(frame, seen.all);
  Value size = kernel.splits.getSize(work.isWhole, tokens, *kernel.config.keys);
  Value count = kernel.splits.getCount(tokens, size);
  Value number = arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                         frame.index(0), work.split);
  return {number, count, size};
}

SeenTokens TokenSplit::restrict(const Frame &frame,
                                const SeenTokens &seen) const {
  SeenTokens some = seen;
  some.all.from = frame.add(seen.all.from, frame.mul(number, size));
  some.all.to = frame.min(seen.all.to, frame.add(some.all.from, size));
  return some;
}
