//===- WarpVote.cpp - Votes of the lanes of a warp ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpVote.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kvcache;

Value kvcache::ballot(const Frame &frame, Value flag) {
  return NVVM::VoteSyncOp::create(frame.builder, frame.loc,
                                  frame.builder.getI32Type(), frame.i32(-1),
                                  flag, NVVM::VoteSyncKind::ballot);
}

Value kvcache::getLowerLanes(const Frame &frame, Value lane) {
  Value bit = arith::ShLIOp::create(frame.builder, frame.loc, frame.i32(1),
                                    frame.toI32(lane));
  return frame.sub(bit, frame.i32(1));
}

Value kvcache::countLanes(const Frame &frame, Value lanes) {
  return math::CtPopOp::create(frame.builder, frame.loc, lanes);
}

Value kvcache::countLanes(const Frame &frame, Value lanes, Value others) {
  return countLanes(
      frame, arith::AndIOp::create(frame.builder, frame.loc, lanes, others));
}
