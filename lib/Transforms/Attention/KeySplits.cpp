//===- KeySplits.cpp - The splits of the keys of rows ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeySplits.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Layers of a grid that have splits, of 65,535.
constexpr int64_t kMostLayers = 1 << 15;

static WorkspaceShape getShape(AttentionOp op) {
  return WorkspaceShape::get(
      cast<MemRefType>(op.getQ().getType()).getDimSize(1),
      cast<MemRefType>(op.getOut().getType()).getDimSize(2),
      op.getSplitOrDefault());
}

KeySplits::KeySplits(const Frame &frame, AttentionOp op)
    : frame(frame), memory(op.getWorkspace()), offsets(op.getRowOffsets()),
      leastTokens(static_cast<int64_t>(op.getSplitOrDefault().getKeys())),
      shape(getShape(op)) {}

Value KeySplits::countSlots() const {
  return frame.mul(frame.countSequences(offsets), shape.rows);
}

int64_t KeySplits::countPerLayer() const {
  return llvm::divideCeil(shape.splits, kMostLayers);
}

int64_t KeySplits::countLayers() const {
  return llvm::divideCeil(shape.splits, countPerLayer());
}

Value KeySplits::hasRows(Value isWhole, Value count) const {
  auto select = [&](int64_t whole, int64_t split) -> Value {
    return arith::SelectOp::create(frame.builder, frame.loc, isWhole,
                                   frame.index(whole), frame.index(split));
  };
  int64_t end = shape.rows + 1;
  return frame.below(frame.sub(count, select(end, 0)),
                     select(int64_t(1) << 32, end));
}

Value KeySplits::getSize(Value isWhole, Value count, int64_t multiple) const {
  Value size =
      frame.div(frame.add(count, frame.index(shape.splits - 1)), shape.splits);
  size = frame.max(size, frame.index(leastTokens));
  size = arith::SelectOp::create(frame.builder, frame.loc, isWhole,
                                 frame.max(count, frame.index(1)), size);
  Value last = frame.index(multiple - 1);
  return frame.mul(frame.div(frame.add(size, last), multiple), multiple);
}

// Numbers of tokens have 32 bits: a division of 64 bits is a call, after which
// ptxas puts nothing into uniform registers.
Value KeySplits::getCount(Value count, Value size) const {
  Value one = frame.index(1);
  Value last = frame.sub(frame.max(count, one), one);
  return frame.add(
      frame.fromI32(frame.div(frame.toI32(last), frame.toI32(size))), one);
}
