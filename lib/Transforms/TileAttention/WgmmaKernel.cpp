//===- WgmmaKernel.cpp - Attention of warpgroups over fragments -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaKernel.h"

#include "OnlineSoftmax.h"
#include "ProductTeam.h"
#include "QueryStage.h"
#include "TileFeed.h"
#include "TileScores.h"
#include "WorkItems.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block computes as many query rows as its plan has: some tokens of a
/// sequence, for some heads of a group each. Each warpgroup has 64 of the rows
/// as fragments, or a share of their values. All threads bring tiles of keys
/// and values, copies of which they start while scores are computed.
class WgmmaKernel {
public:
  WgmmaKernel(AttentionOp op, const Frame &frame, const TilePlan &plan)
      : frame(frame), block(op, frame, plan), b(frame.builder, frame.loc),
        items(block), feed(block, items),
        queries(block, feed.getKeyElement(), plan.countThreads()) {}

  /// The difference of a row's largest score and the exponent that its weights
  /// are relative to.
  float getBias() const {
    return feed.getValueElement().isF16() ? kHalfBias : 0;
  }

  void emit() {
    items.emit(block.plan.countThreads(),
               {[&] { allocate(); }, [&] { return attendTokens(); },
                [&](const RowSums &sums, WorkItemCode::Store store) {
                  if (block.schedule)
                    b.recomputePlaces();
                  store(FragmentResults(block, team.getFirstRow(),
                                        team.getFirstColumn()),
                        sums);
                }});
  }

private:
  FragmentType getAcc(int64_t columns) const {
    return team.getFragment(columns, frame.builder.getF32Type(),
                            FragmentLayout::WgmmaAcc);
  }
  FragmentType getScoreType() const { return getAcc(block.plan.tokens); }

  void allocate() {
    queries.allocate();
    feed.allocate();
  }

  /// The sums of the block's tokens.
  RowSums attendTokens() {
    TileScores scores(block, getScoreType(), team.getFirstRow());
    OnlineSoftmax softmax(block.f, scores.getFactor(), getBias());
    Value tiles = block.findTiles(block.plan.countThreads());
    feed.start(tiles);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/true);
    SoftmaxState state = softmax.forTiles(
        softmax.begin(getAcc(team.countColumns())), tiles, block.plan.schedule,
        [&](Value tile, SoftmaxState &state) {
          addTile(tile, scores, softmax, state);
        });
    return {state.acc, softmax.getReference(state), softmax.getTotal(state),
            getBias()};
  }

  void addTile(Value tile, const TileScores &scores,
               const OnlineSoftmax &softmax, SoftmaxState &state) {
    feed.begin(tile);
    Value token = block.getToken(tile);
    auto addScores = [&](Value products) {
      return softmax.addScores(
          scores.apply(feed.scaleScores(products), tile, token),
          team.getFragment(block.plan.tokens, feed.getValueElement(),
                           FragmentLayout::WgmmaA16),
          state, [&](Value weights) { return feed.scaleWeights(weights); });
    };
    if (feed.areLatent()) {
      SmallVector<Value> before = state.getValues();
      state = SoftmaxState(
          feed.useKeys(tile, TypeRange(ValueRange(before)), [&](Value keyTile) {
            Value left = addScores(multiplyKeys(keyTile, tile));
            state.acc = addValues(left, keyTile, state.acc);
            return state.getValues();
          }));
      return feed.end();
    }
    SmallVector<Value> products =
        feed.useKeys(tile, getScoreType(), [&](Value keyTile) {
          return SmallVector<Value>{multiplyKeys(keyTile, tile)};
        });
    Value left = addScores(products.front());
    SmallVector<Value> acc =
        feed.useValues(tile, state.acc.getType(), [&](Value valueTile) {
          return SmallVector<Value>{addValues(left, valueTile, state.acc)};
        });
    state.acc = acc.front();
    feed.end();
  }

  /// The products of queries and keys. The next tiles are copied meanwhile.
  Value multiplyKeys(Value keyTile, Value tile) {
    Value zero = frame.index(0);
    Value started = FragmentMmaOp::create(
        frame.builder, frame.loc, FragmentBuilder::getInFlight(getScoreType()),
        queries.getTile(), team.getFirstRow(), zero, keyTile, zero, zero,
        /*accumulator=*/Value(),
        frame.builder.getI64IntegerAttr(block.keySize));
    feed.copyMeanwhile(tile);
    return b.wait(started);
  }

  Value addValues(Value weights, Value valueTile, Value acc) {
    return b.wait(FragmentMmaOp::create(
        frame.builder, frame.loc,
        FragmentBuilder::getInFlight(cast<FragmentType>(acc.getType())),
        weights, /*a_row=*/Value(), /*a_column=*/Value(), valueTile,
        frame.index(0), team.getFirstColumn(), acc, /*k=*/IntegerAttr(),
        Major::K, Major::MN));
  }

  Frame frame;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileFeed feed;
  QueryStage queries;
  ProductTeam team{block, kWarpgroup, kRowsOfWarpgroup};
};

} // namespace

void kvcache::tileWgmma(AttentionOp op, const Frame &frame,
                        const TilePlan &plan) {
  WgmmaKernel kernel(op, frame, plan);
  kernel.emit();
  if (op.getWorkspace())
    expandMerge(op, frame, plan, kernel.getBias());
}
