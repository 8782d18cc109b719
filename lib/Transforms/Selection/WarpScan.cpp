//===- WarpScan.cpp - Sums over the lanes of a warp -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpScan.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

WarpScan::WarpScan(const Frame &frame, Value thread, Value number)
    : frame(frame), number(number), inclusive(number) {
  Value lane = frame.toI32(frame.rem(thread, kWarp));
  for (int32_t offset = 1; offset < kWarp; offset *= 2) {
    Value other = gpu::ShuffleOp::create(frame.builder, frame.loc, inclusive,
                                         offset, kWarp, gpu::ShuffleMode::UP)
                      .getShuffleResult();
    Value isFirst = frame.below(lane, frame.i32(offset));
    inclusive = frame.add(
        inclusive, arith::SelectOp::create(frame.builder, frame.loc, isFirst,
                                           frame.i32(0), other));
  }
}

Value WarpScan::shuffle(Value value, Value lane) const {
  return gpu::ShuffleOp::create(frame.builder, frame.loc, value, lane,
                                frame.i32(kWarp), gpu::ShuffleMode::IDX)
      .getShuffleResult();
}
