//===- TileGrid.cpp - The grid of attention on tensor cores ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileGrid.h"

#include "../Attention/SequenceTiles.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The blocks of whole rows, and the blocks of a layer that have splits, for
/// each share of the heads. The last is null without a workspace.
struct GridBlocks {
  SequenceTiles tiles;
  Value whole, split;
  std::shared_ptr<const Workspace> workspace;
};

} // namespace

HeadShare HeadShare::find(const KernelContext &kernel, Value share) {
  const Frame &frame = kernel.frame;
  const BlockShape &shape = kernel.shape;
  Value head = frame.div(share, shape.shares);
  return {head,
          frame.add(frame.mul(head, kernel.sizes.group),
                    frame.mul(frame.rem(share, shape.shares), shape.packed))};
}

static GridBlocks countBlocks(const KernelContext &kernel) {
  const Frame &frame = kernel.frame;
  AttentionOp op = kernel.getOp();
  SequenceTiles tiles(frame, op.getRowOffsets(), kernel.shape.perBlock);
  GridBlocks blocks{tiles, tiles.count(frame.dim(op.getQ(), 0)), {}, {}};
  if (!op.getWorkspace())
    return blocks;
  Value slots = kernel.splits.countSlots();
  blocks.workspace =
      std::make_shared<const Workspace>(kernel.splits.getWorkspace(slots));
  kernel.splits.checkWorkspace(slots);
  blocks.split =
      frame.mul(blocks.tiles.countSequences(),
                kernel.shape.splitTiles * kernel.splits.countPerLayer());
  return blocks;
}

/// Completes the work of a block, whose thread and heads are given, with its
/// rows and its split. The first layer of the grid has whole rows, and the next
/// ones have splits.
static TileWork getSplitWork(const KernelContext &kernel,
                             const GridBlocks &blocks, TileWork work,
                             Value number, Value layer, Value wholeBlock) {
  const Frame &frame = kernel.frame;
  const KeySplits &splits = kernel.splits;
  work.workspace = blocks.workspace;
  work.isWhole = frame.equal(layer, frame.index(0));
  int64_t perLayer = splits.countPerLayer(),
          splitTiles = kernel.shape.splitTiles;
  work.split = frame.add(frame.mul(frame.sub(layer, frame.index(1)), perLayer),
                         frame.rem(number, perLayer));
  Value isReal = frame.below(
      number, arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                      blocks.whole, blocks.split));
  Value tile = frame.div(number, perLayer);
  Value sequence = frame.div(tile, splitTiles);
  work.slot =
      kernel.getOp().getRows() ? tile : frame.mul(sequence, splits.getRows());
  auto findWhole = [&]() -> ValuePair {
    SequenceTile whole = blocks.tiles.find(wholeBlock);
    return {whole.sequence, whole.number};
  };
  auto findSplit = [&]() -> ValuePair {
    return {sequence, frame.rem(tile, splitTiles)};
  };
  std::tie(work.sequence, work.number) = frame.selectPairIf(
      isReal,
      [&] { return frame.selectPairIf(work.isWhole, findWhole, findSplit); },
      // No sequence has as many rows.
      [&]() -> ValuePair { return {frame.index(0), frame.index(1u << 31)}; });
  return work;
}

void kvcache::forGridTiles(const KernelContext &kernel, int64_t threads,
                           function_ref<void(const TileWork &)> body) {
  const Frame &frame = kernel.frame;
  GridBlocks blocks = countBlocks(kernel);
  Value all =
      blocks.split ? frame.max(blocks.whole, blocks.split) : blocks.whole;
  Value layers =
      frame.index(blocks.split ? 1 + kernel.splits.countLayers() : 1);
  int64_t across = kernel.shape.across;
  auto getWork = [&](Value thread, ValueRange block) -> TileWork {
    TileWork work;
    work.thread = thread;
    HeadShare heads = HeadShare::find(kernel, frame.rem(block[0], across));
    work.head = heads.head;
    work.firstHead = heads.firstHead;
    Value number = frame.div(block[0], across);
    // The last rows of a causal prompt see most, and begin first.
    Value wholeBlock =
        frame.sub(frame.sub(blocks.whole, frame.index(1)), number);
    if (blocks.split)
      return getSplitWork(kernel, blocks, work, number, block[1], wholeBlock);
    SequenceTile tile = blocks.tiles.find(wholeBlock);
    work.sequence = tile.sequence;
    work.number = tile.number;
    return work;
  };
  frame.forBlocks(
      {frame.mul(all, across), layers}, {1, 1},
      [&](ValueRange block) {
        frame.forThreads({threads},
                         [&](ValueRange ids) { body(getWork(ids[0], block)); });
      },
      /*alongX=*/0);
}
