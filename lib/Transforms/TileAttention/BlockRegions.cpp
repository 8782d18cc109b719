//===- BlockRegions.cpp - Regions of attention in a block -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRegions.h"

#include "../Attention/ScoreRegions.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::kvcache;

Value kvcache::emitRegion(const TileRows &block, Region &region, Value score,
                          Value row, Value token) {
  const Frame &frame = block.getFrame();
  auto [i, queryHead] = block.getRow(row);
  if (RegionAxes(region, getScoreAxes(region)).isColumnBound()) {
    // As an i32: there are instructions for its minimum.
    Value last =
        frame.toI32(frame.sub(block.rows.sequence.tokens, frame.index(1)));
    token = frame.fromI32(arith::MinUIOp::create(frame.builder, frame.loc,
                                                 frame.toI32(token), last));
  }
  SmallVector<Value> arguments;
  if (score)
    arguments.push_back(score);
  arguments.append(
      {block.rows.sequence.batch, queryHead,
       getQueryPosition(frame, block.getOp(), block.rows.sequence, i), token});
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  for (Operation &op : region.front().without_terminator())
    frame.builder.clone(op, mapping);
  return mapping.lookupOrDefault(region.front().getTerminator()->getOperand(0));
}
