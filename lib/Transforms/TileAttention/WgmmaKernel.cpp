//===- WgmmaKernel.cpp - Attention of warpgroups over fragments -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaKernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "ProductTeam.h"
#include "QueryStage.h"
#include "SoftmaxLoop.h"
#include "TileFeed.h"
#include "WorkItems.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block computes as many query rows as its config has: some tokens of a
/// sequence, for some heads of a group each. Each warpgroup has 64 of the rows
/// as fragments, or a share of their values. All threads bring tiles of keys
/// and values, copies of which they start while scores are computed.
class WgmmaKernel {
public:
  WgmmaKernel(AttentionOp op, const Frame &frame, const AttentionConfig &config)
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
                  if (isPersistent(block.getConfig()))
                    b.recomputePlaces();
                  store(FragmentResults(block, b, team.getFirstRow(),
                                        team.getFirstColumn()),
                        states);
                }});
  }

private:
  FragmentType getAcc(int64_t columns) const {
    return team.getFragment(columns, frame.builder.getF32Type(),
                            FragmentLayout::WgmmaAcc);
  }
  FragmentType getScoreType() const { return getAcc(*block.getConfig().keys); }

  void allocate() {
    queries.allocate();
    feed.allocate();
  }

  /// The sums of the block's tokens.
  RowStates attendTokens() {
    TileScores scores(block, b, getScoreType(), team.getFirstRow());
    SoftmaxLoop loop(b, block, feed, scores, getBias());
    const OnlineSoftmax &softmax = loop.getSoftmax();
    Value tiles = block.findTiles(countThreads(block.getConfig()));
    feed.start(tiles);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/true);
    FragmentType operand =
        team.getFragment(*block.getConfig().keys, feed.getValueElement(),
                         FragmentLayout::WgmmaA16);
    return loop.run(
        softmax.begin(getAcc(team.countColumns())), tiles,
        {[&](Value keyTile, Value tile) { return multiplyKeys(keyTile, tile); },
         [&](Value tileScores, Value, SoftmaxState &state) {
           return softmax.addScores(tileScores, state, [&](Value probs) {
             return b.toOperand(operand, feed.scaleProbs(probs));
           });
         },
         [&](Value probs, Value valueTile, Value, SoftmaxState &state) {
           state.getAcc() = addValues(probs, valueTile, state.getAcc());
         }});
  }

  /// The products of queries and keys. The next tiles are copied meanwhile.
  Value multiplyKeys(Value keyTile, Value tile) {
    Value started = b.startTiles(
        getScoreType(), queries.getTile(), team.getFirstRow(),
        /*column=*/frame.index(0), keyTile, block.getSizes().keySize);
    feed.copyMeanwhile(tile);
    return b.wait(started);
  }

  Value addValues(Value probs, Value valueTile, Value acc) {
    return b.wait(b.startProduct(cast<FragmentType>(acc.getType()), probs,
                                 valueTile, team.getFirstColumn(), acc,
                                 Major::MN));
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileFeed feed;
  QueryStage queries;
  ProductTeam team{block, kWarpgroup, kRowsOfWarpgroup};
};

} // namespace

void kvcache::tileWgmma(AttentionOp op, const Frame &frame,
                        const AttentionConfig &config) {
  WgmmaKernel(op, frame, config).emit();
}
