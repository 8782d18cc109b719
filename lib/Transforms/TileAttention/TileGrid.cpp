//===- TileGrid.cpp - The grid of attention on tensor cores ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileGrid.h"

#include "../Attention/SequenceTiles.h"
#include "../PlanAttention/TileSizes.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The blocks of whole rows, and the blocks of a layer that have splits, for
/// each share of the heads. The last is null if no rows are split.
struct GridBlocks {
  SequenceTiles tiles;
  Value whole, split;
  std::shared_ptr<const Workspace> workspace;
};

/// The place of a block in a grid with splits: the number of its tile among
/// those of split rows, the number of a tile of whole rows, and whether the
/// block has rows of its kind.
struct SplitPlace {
  Value tile, wholeBlock, isReal;
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
  if (!op.splitsKeys())
    return blocks;
  if (!mergesInCluster(kernel.config)) {
    Value slots = kernel.splits.countSlots();
    blocks.workspace =
        std::make_shared<const Workspace>(kernel.splits.getWorkspace(slots));
    kernel.splits.checkWorkspace(slots);
  }
  blocks.split =
      frame.mul(blocks.tiles.countSequences(),
                kernel.shape.splitTiles * kernel.splits.countPerLayer());
  return blocks;
}

/// The number of the whole rows' tile that a block computes. The last rows of a
/// causal prompt see most, and begin first.
static Value getWholeBlock(const Frame &frame, const GridBlocks &blocks,
                           Value number) {
  return frame.sub(frame.sub(blocks.whole, frame.index(1)), number);
}

/// Places a block in a grid whose first layer has whole rows, and whose next
/// ones have splits.
static SplitPlace placeInLayer(const KernelContext &kernel,
                               const GridBlocks &blocks, TileWork &work,
                               Value number, Value layer) {
  const Frame &frame = kernel.frame;
  Value wholeBlock = getWholeBlock(frame, blocks, number);
  work.workspace = blocks.workspace;
  work.isWhole = frame.equal(layer, frame.index(0));
  int64_t perLayer = kernel.splits.countPerLayer();
  work.split = frame.add(frame.mul(frame.sub(layer, frame.index(1)), perLayer),
                         frame.rem(number, perLayer));
  Value isReal = frame.below(
      number, arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                      blocks.whole, blocks.split));
  return {frame.div(number, perLayer), wholeBlock, isReal};
}

/// The clusters of whole rows: each block of these has a tile.
static Value countWholeClusters(const KernelContext &kernel,
                                const GridBlocks &blocks) {
  const Frame &frame = kernel.frame;
  int64_t size = kernel.splits.getMax();
  return frame.div(frame.add(blocks.whole, frame.index(size - 1)), size);
}

/// Places a block in a grid of clusters: the first ones have whole rows, and
/// each of the others the splits of some rows.
static SplitPlace placeInCluster(const KernelContext &kernel,
                                 const GridBlocks &blocks, TileWork &work,
                                 Value cluster, Value rank) {
  const Frame &frame = kernel.frame;
  Value wholeClusters = countWholeClusters(kernel, blocks);
  work.isWhole = frame.below(cluster, wholeClusters);
  work.split = rank;
  Value whole = frame.add(frame.mul(cluster, kernel.splits.getMax()), rank);
  Value isReal = arith::SelectOp::create(
      frame.builder, frame.loc, work.isWhole, frame.below(whole, blocks.whole),
      arith::ConstantOp::create(frame.builder, frame.loc,
                                frame.builder.getBoolAttr(true)));
  return {frame.sub(cluster, wholeClusters),
          getWholeBlock(frame, blocks, whole), isReal};
}

/// Completes the work of a block, whose thread and heads are given, with its
/// rows and its split.
static TileWork getSplitWork(const KernelContext &kernel,
                             const GridBlocks &blocks, TileWork work,
                             Value number, Value layer) {
  const Frame &frame = kernel.frame;
  SplitPlace place = mergesInCluster(kernel.config)
                         ? placeInCluster(kernel, blocks, work, number, layer)
                         : placeInLayer(kernel, blocks, work, number, layer);
  int64_t splitTiles = kernel.shape.splitTiles;
  Value sequence = frame.div(place.tile, splitTiles);
  work.slot = kernel.getOp().getRows()
                  ? place.tile
                  : frame.mul(sequence, kernel.splits.getRows());
  auto findWhole = [&]() -> ValuePair {
    SequenceTile whole = blocks.tiles.find(place.wholeBlock);
    return {whole.sequence, whole.number};
  };
  auto findSplit = [&]() -> ValuePair {
    return {sequence, frame.rem(place.tile, splitTiles)};
  };
  std::tie(work.sequence, work.number) = frame.selectPairIf(
      place.isReal,
      [&] { return frame.selectPairIf(work.isWhole, findWhole, findSplit); },
      // No sequence has as many rows.
      [&]() -> ValuePair { return {frame.index(0), frame.index(1u << 31)}; });
  return work;
}

/// The sizes of the grid, for one share of the heads.
static ValuePair getGridSizes(const KernelContext &kernel,
                              const GridBlocks &blocks) {
  const Frame &frame = kernel.frame;
  if (!blocks.split)
    return {blocks.whole, frame.index(1)};
  if (mergesInCluster(kernel.config))
    return {frame.add(countWholeClusters(kernel, blocks), blocks.split),
            frame.index(kernel.splits.getMax())};
  return {frame.max(blocks.whole, blocks.split),
          frame.index(1 + kernel.splits.countLayers())};
}

void kvcache::forGridTiles(const KernelContext &kernel, int64_t threads,
                           function_ref<void(const TileWork &)> body) {
  const Frame &frame = kernel.frame;
  GridBlocks blocks = countBlocks(kernel);
  auto [all, layers] = getGridSizes(kernel, blocks);
  // Blocks of a pair follow one another along y.
  int64_t pair = isPair(kernel.config) ? kBlocksOfPair : 1;
  int64_t across = kernel.shape.across / pair;
  if (isPair(kernel.config))
    layers = frame.index(kBlocksOfPair);
  auto getWork = [&](Value thread, ValueRange block) -> TileWork {
    TileWork work;
    work.thread = thread;
    Value share = frame.rem(block[0], across);
    if (isPair(kernel.config))
      share = frame.add(frame.mul(share, kBlocksOfPair), block[1]);
    HeadShare heads = HeadShare::find(kernel, share);
    work.head = heads.head;
    work.firstHead = heads.firstHead;
    Value number = frame.div(block[0], across);
    if (blocks.split)
      return getSplitWork(kernel, blocks, work, number, block[1]);
    SequenceTile tile = blocks.tiles.find(getWholeBlock(frame, blocks, number));
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
