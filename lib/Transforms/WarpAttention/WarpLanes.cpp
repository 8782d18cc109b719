//===- WarpLanes.cpp - How lanes of a warp share heads --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpLanes.h"

#include "../PlanAttention/AttentionSizes.h"
#include "../PlanAttention/TileSizes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

WarpLanes::WarpLanes(AttentionOp op, const AttentionConfig &config)
    : sizes(computeWarpSizes(op)), hint(getHint(op.getContext(), config)) {
  AttentionSizes elements(op);
  keyPieces = elements.keySize / (sizes.lanes * sizes.keyWidth);
  valuePieces = elements.valueSize / (sizes.lanes * sizes.valueWidth);
}

Value WarpLanes::getElement(const Frame &frame, int64_t piece,
                            int64_t width) const {
  Value first = frame.mul(lane, width);
  return frame.add(first, frame.index(piece * sizes.lanes * width));
}

Value WarpLanes::getQueryHead(const Frame &frame, int64_t g) const {
  return frame.add(firstHead, frame.index(g));
}

/// Sums, or maxima, over `size` lanes of a warp that are `stride` apart.
static Value reduce(const DeviceMath &f, Value value, bool isMax, int64_t size,
                    int64_t stride) {
  for (int64_t offset = stride; offset < size * stride; offset *= 2) {
    auto shuffle = gpu::ShuffleOp::create(
        f.builder, f.loc, value, static_cast<int32_t>(offset),
        static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR);
    Value other = shuffle.getShuffleResult();
    value = isMax ? f.max(value, other) : f.add(value, other);
  }
  return value;
}

Value WarpLanes::reduceTokens(const DeviceMath &f, Value value,
                              bool isMax) const {
  return reduce(f, value, isMax, countTokens(), sizes.lanes);
}

Value WarpLanes::sumTokens(const DeviceMath &f, Value vector) const {
  int64_t count = cast<VectorType>(vector.getType()).getNumElements();
  SmallVector<Value> elements;
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(
        reduceTokens(f, vector::ExtractOp::create(f.builder, f.loc, vector, i),
                     /*isMax=*/false));
  return vector::FromElementsOp::create(f.builder, f.loc, f.vectorOf(count),
                                        elements);
}

Value WarpLanes::sumElements(const DeviceMath &f, Value value) const {
  return reduce(f, value, /*isMax=*/false, sizes.lanes, /*stride=*/1);
}
