//===- ClusterMerge.cpp - The merge of splits in a cluster ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClusterMerge.h"

#include "../PlanAttention/TileSizes.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Elements of a thread, which are one access.
constexpr int64_t kWidth = 4;

ClusterMerge::ClusterMerge(const TileRows &block)
    : block(block), frame(block.getFrame()), adder(frame, kWidth) {}

void ClusterMerge::allocate() {
  auto type = TileType::get(frame.builder.getContext(), *block.getConfig().rows,
                            countSplitColumns(block.getSizes().valueSize),
                            frame.builder.getF32Type(), Swizzle::None);
  tile = AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
}

void ClusterMerge::syncCluster() const {
  ClusterBarrierOp::create(frame.builder, frame.loc,
                           block.kernel.splits.getMax());
}

SplitState ClusterMerge::load(int64_t split, Value row, Value d,
                              Value count) const {
  Value number = frame.index(split);
  Value rank = frame.min(number, frame.sub(count, frame.index(1)));
  auto load = [&](Value column, int64_t width) -> Value {
    return ClusterLoadOp::create(frame.builder, frame.loc,
                                 adder.f.vectorOf(width), tile, row, column,
                                 rank);
  };
  Value state = load(frame.index(block.getSizes().valueSize), 2);
  auto extract = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(frame.builder, frame.loc, state, i);
  };
  return adder.selectIf(frame.below(number, count),
                        {extract(0), extract(1), load(d, kWidth)});
}

void ClusterMerge::merge(Value count, float bias) const {
  int64_t blocks = block.kernel.splits.getMax();
  int64_t threads = countThreads(block.getConfig());
  int64_t perRow = block.getSizes().valueSize / kWidth;
  const BlockRows &rows = block.rows;
  Value end = frame.mul(rows.count, block.kernel.shape.packed * perRow);
  Value first =
      frame.add(frame.mul(rows.work.split, threads), rows.work.thread);
  syncCluster();
  frame.loop(first, end, frame.index(blocks * threads), [&](Value number) {
    Value row = frame.div(number, perRow);
    Value d = frame.mul(frame.rem(number, perRow), kWidth);
    // The sums are those of a merge in a launch of its own, which adds 8. What
    // one that is not there adds, more of them do not change.
    SmallVector<SplitState> splits;
    for (int64_t p = 0; p < blocks; ++p)
      splits.push_back(load(p, row, d, count));
    if (blocks < kAddedSplits)
      splits.push_back(adder.getNone());
    auto [i, queryHead] = block.getRow(row);
    storeMerged(
        frame, RowOperands::get(block.getOp()), adder.add(splits),
        {frame.add(rows.sequence.first, i), queryHead, d, rows.work.head},
        bias);
  });
  // A block ends when no other one reads its split.
  syncCluster();
}
