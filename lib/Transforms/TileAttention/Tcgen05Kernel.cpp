//===- Tcgen05Kernel.cpp - Attention in tensor memory ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tcgen05Kernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "QueryStage.h"
#include "SoftmaxLoop.h"
#include "TensorProducts.h"
#include "TileFeed.h"
#include "WorkItems.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Columns of the accumulator that a thread has in registers at once: beside
/// the scores of a tile, and at the end.
constexpr int64_t kFewColumns = 32, kMostColumns = 64;

/// A block computes as many query rows as its config has: some tokens of a
/// sequence, for some heads of a group each. One thread starts the products of
/// all rows into tensor memory, and each warp computes the softmax of 16 rows.
/// All threads bring tiles of keys and values, copies of which they start while
/// products are computed.
class Tcgen05Kernel {
public:
  Tcgen05Kernel(AttentionOp op, const Frame &frame,
                const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc), items(kernel, block),
        feed(block, b, items),
        queries(block, feed.getKeyElement(), countThreads(config)),
        products(frame, *config.rows, *config.keys, block.getSizes().valueSize,
                 feed.getValueElement()) {}

  /// The difference of a row's largest score and the exponent that its probs
  /// are relative to.
  float getBias() const {
    return getExponentBias(block.getOp(), block.getConfig());
  }

  void emit() {
    items.emit(countThreads(block.getConfig()),
               {[&](Value thread) { allocate(thread); },
                [&] { return attendTokens(); },
                [&](const RowStates &states, WorkItemCode::Store store) {
                  storeColumns(states, store);
                }});
  }

private:
  FragmentType getFragment(int64_t columns) {
    return FragmentType::get(
        frame.builder.getContext(), {*block.getConfig().rows, columns},
        frame.builder.getF32Type(), FragmentLayout::TmemAcc, /*partial=*/false);
  }
  FragmentType getScoreType() { return getFragment(*block.getConfig().keys); }

  void allocate(Value thread) {
    queries.allocate();
    feed.allocate();
    if (isPersistent(block.getConfig()))
      products.allocate(thread);
  }

  /// The sums of the block's tokens. The accumulator is in tensor memory.
  RowStates attendTokens() {
    TileScores scores(block, b, getScoreType(), /*firstRow=*/frame.index(0));
    SoftmaxLoop loop(b, block, feed, scores, getBias());
    const OnlineSoftmax &softmax = loop.getSoftmax();
    tiles = block.findTiles(countThreads(block.getConfig()));
    feed.start(tiles);
    if (!isPersistent(block.getConfig()))
      products.allocate(block.rows.work.thread);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/true);
    return loop.run(
        softmax.beginRows(getScoreType()), tiles,
        {[&](Value keyTile, Value tile) { return multiply(keyTile, tile); },
         [&](Value tileScores, Value tile, SoftmaxState &state) {
           storeProbs(softmax.addScoresLazily(
                          tileScores, getExponentSlack(block.getOp()), state),
                      tile);
           return Value();
         },
         [&](Value, Value valueTile, Value tile, SoftmaxState &) {
           products.addColumns(valueTile, hasSums(tile));
         }});
  }

  /// The products of queries and keys. The next tiles are copied meanwhile.
  Value multiply(Value keyTile, Value tile) {
    products.multiplyRows(queries.getTile(), keyTile,
                          [&] { feed.copyMeanwhile(tile); });
    return TmemLoadOp::create(frame.builder, frame.loc, getScoreType(),
                              products.getScores(), frame.index(0),
                              /*half=*/Value());
  }

  /// Whether there are tiles before this one.
  Value hasSums(Value tile) { return frame.below(frame.index(0), tile); }

  /// Scales the accumulator where a row grows, and stores the probs.
  void storeProbs(const LazyProbs &added, Value tile) {
    Value grows = WarpAnyOp::create(frame.builder, frame.loc, added.grows);
    Value isScaled =
        arith::AndIOp::create(frame.builder, frame.loc, grows, hasSums(tile));
    frame.runIf(isScaled, [&] {
      products.forColumns(kFewColumns, [&](Value column, int64_t count) {
        storeAcc(b.multiply(loadAcc(column, count), added.rescale), column);
      });
    });
    Value rounded =
        b.truncate(feed.scaleProbs(added.probs), feed.getValueElement());
    TmemStoreOp::create(frame.builder, frame.loc, rounded, products.getProbs(),
                        frame.index(0),
                        /*half=*/Value());
  }

  Value loadAcc(Value column, int64_t count) {
    return TmemLoadOp::create(frame.builder, frame.loc, getFragment(count),
                              products.getAcc(), column, /*half=*/Value());
  }
  void storeAcc(Value acc, Value column) {
    TmemStoreOp::create(frame.builder, frame.loc, acc, products.getAcc(),
                        column, /*half=*/Value());
  }

  /// Stores the columns of the accumulator, which is 0 without tiles.
  void storeColumns(const RowStates &states, WorkItemCode::Store store) {
    products.forColumns(kMostColumns, [&](Value column, int64_t count) {
      Value acc = frame.selectIf(
          hasSums(tiles), [&] { return loadAcc(column, count); },
          [&] {
            return b.splat(getFragment(count), DeviceMath(frame).constant(0));
          });
      store(FragmentResults(block, b, /*firstRow=*/frame.index(0), column),
            {{acc}, states.reference, states.rowSum, states.bias});
    });
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileFeed feed;
  QueryStage queries;
  TensorProducts products;
  /// The number of tiles.
  Value tiles;
};

} // namespace

void kvcache::tileTcgen05(AttentionOp op, const Frame &frame,
                          const AttentionConfig &config) {
  Tcgen05Kernel(op, frame, config).emit();
}
