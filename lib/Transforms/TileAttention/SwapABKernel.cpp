//===- SwapABKernel.cpp - Attention of few rows over fragments ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SwapABKernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "QueryStage.h"
#include "SoftmaxLoop.h"
#include "TileFeed.h"
#include "TilePipe.h"
#include "WorkItems.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block is a warpgroup, which computes few query rows: they are columns of
/// its products, and tokens or elements of values are rows. Each warp has 16
/// tokens of each 64, so warps exchange maxima and probs through tiles.
class SwapABKernel {
public:
  SwapABKernel(AttentionOp op, const Frame &frame,
               const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc), items(kernel, block),
        feed(block, b, items),
        queries(block, feed.getKeyElement(), countThreads(config)) {}

  float getBias() const {
    return getExponentBias(block.getOp(), block.getConfig());
  }

  void emit() {
    items.emit(countThreads(block.getConfig()),
               {[&](Value) { allocate(); }, [&] { return attendTokens(); },
                [&](const RowStates &states, WorkItemCode::Store store) {
                  if (!isPersistent(block.getConfig()))
                    b.recomputePlaces();
                  store(
                      FragmentResults(block, b, frame.index(0), frame.index(0)),
                      states);
                }});
  }

private:
  FragmentType getAcc(int64_t columns) const {
    return FragmentType::get(
        frame.builder.getContext(), {*block.getConfig().rows, columns},
        frame.builder.getF32Type(), FragmentLayout::WgmmaAccT,
        /*partial=*/false);
  }

  void allocate() {
    queries.allocate();
    feed.allocate();
    auto makeTile = [&](TileType type) {
      return AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
    };
    probTile =
        makeTile(getMatrixTile(feed.getValueElement(), *block.getConfig().keys,
                               *block.getConfig().rows));
    scratch = makeTile(TileType::get(
        frame.builder.getContext(), kWarpgroup / kWarp, *block.getConfig().rows,
        frame.builder.getF32Type(), Swizzle::None));
  }

  /// The sums of the block's tokens.
  RowStates attendTokens() {
    // A work item has a copy of its own.
    if (isPersistent(block.getConfig()))
      b.placeBy(block.rows.work.thread);
    TileScores scores(block, b, getAcc(*block.getConfig().keys),
                      /*firstRow=*/frame.index(0));
    SoftmaxLoop loop(b, block, feed, scores, getBias(), scratch);
    const OnlineSoftmax &softmax = loop.getSoftmax();
    Value tiles = block.findTiles(countThreads(block.getConfig()));
    feed.start(tiles);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/true);
    return loop.run(
        softmax.begin(getAcc(block.getSizes().valueSize)), tiles,
        {[&](Value keyTile, Value tile) { return multiplyKeys(keyTile, tile); },
         [&](Value tileScores, Value, SoftmaxState &state) {
           return softmax.addScores(tileScores, state, [&](Value probs) {
             storeProbs(feed.scaleProbs(probs));
             return Value();
           });
         },
         [&](Value, Value valueTile, Value, SoftmaxState &state) {
           state.getAcc() = addValues(valueTile, state.getAcc());
         },
         [&] {
           if (!isPersistent(block.getConfig()))
             b.recomputePlaces();
         }});
  }

  /// Stores the probs of a tile, a row for each token, for the next product.
  /// Its barrier also orders the maxima that warps exchange through `scratch`
  /// and the next ones.
  void storeProbs(Value probs) const {
    Value rounded = b.truncate(probs, feed.getValueElement());
    Value zero = frame.index(0);
    FragmentStoreOp::create(frame.builder, frame.loc, rounded, probTile, zero,
                            zero, b.getThread(), /*transposed=*/true);
    emitAsyncFence(frame);
    gpu::BarrierOp::create(frame.builder, frame.loc);
  }

  /// The products of queries and keys. The next tiles are copied meanwhile.
  Value multiplyKeys(Value keyTile, Value tile) const {
    Value started =
        multiply(queries.getTile(), keyTile, getAcc(*block.getConfig().keys),
                 /*acc=*/Value(), Major::K, block.getSizes().keySize);
    feed.copyMeanwhile(tile);
    return b.wait(started);
  }

  Value addValues(Value valueTile, Value acc) const {
    return b.wait(multiply(probTile, valueTile,
                           cast<FragmentType>(acc.getType()), acc, Major::MN,
                           *block.getConfig().keys));
  }

  /// Starts a product of the tiles of all rows, of one major.
  Value multiply(Value left, Value right, FragmentType type, Value acc,
                 Major major, int64_t k) const {
    Value zero = frame.index(0);
    return b.startTiles(type, left, zero, zero, right, k, acc, major, major);
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileFeed feed;
  QueryStage queries;
  /// A row of probs for each token, and numbers of rows for each warp.
  Value probTile, scratch;
};

} // namespace

void kvcache::tileSwapAB(AttentionOp op, const Frame &frame,
                         const AttentionConfig &config) {
  SwapABKernel(op, frame, config).emit();
}
