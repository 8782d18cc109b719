//===- MmaSyncKernel.cpp - Attention of warps over fragments --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaSyncKernel.h"

#include "OnlineSoftmax.h"
#include "ProductTeam.h"
#include "QueryStage.h"
#include "TileFeed.h"
#include "TileScores.h"
#include "WorkItems.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Columns of an MMA's left operand.
constexpr int64_t kStep = 16;
/// Elements of a query up to which a warp keeps its rows in registers.
constexpr int64_t kMostKept = 128;

/// A block computes as many query rows as its plan has: some tokens of a
/// sequence, for some heads of a group each. Each warp has 16 of the rows as
/// fragments, or a share of their values. All threads bring tiles of keys
/// and values, while they compute with the tiles before.
class MmaSyncKernel {
public:
  MmaSyncKernel(AttentionOp op, const Frame &frame, const TilePlan &plan)
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
                  if (!keepsQueries() && (block.schedule || block.ids))
                    b.recomputePlaces();
                  store(getResults(), sums);
                }});
  }

private:
  //===--------------------------------------------------------------------===//
  // Warps
  //===--------------------------------------------------------------------===//

  FragmentResults getResults() {
    return FragmentResults(block, team.getFirstRow(), team.getFirstColumn());
  }

  FragmentType getAcc(int64_t columns) const {
    return team.getFragment(columns, frame.builder.getF32Type(),
                            FragmentLayout::MmaAcc);
  }

  void allocate() {
    queries.allocate();
    feed.allocate();
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// The sums of the block's tokens.
  RowSums attendTokens() {
    // The places of long rows take many registers.
    if (block.schedule && !keepsQueries())
      b.recomputePlaces();
    TileScores scores(block, getAcc(block.plan.tokens), team.getFirstRow());
    OnlineSoftmax softmax(block.f, scores.getFactor(), getBias());
    Value tiles = block.findTiles(block.plan.countThreads());
    feed.start(tiles);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/false);
    loadQueries();
    SoftmaxState state = softmax.forTiles(
        softmax.begin(getAcc(team.countColumns())), tiles, block.plan.schedule,
        [&](Value tile, SoftmaxState &state) {
          feed.begin(tile);
          feed.areLatent() ? addLatentTile(tile, scores, softmax, state)
                           : addTile(tile, scores, softmax, state);
          feed.end();
        });
    return {state.acc, softmax.getReference(state), softmax.getTotal(state),
            getBias()};
  }

  void addTile(Value tile, const TileScores &scores,
               const OnlineSoftmax &softmax, SoftmaxState &state) {
    Value token = block.getToken(tile);
    SmallVector<Value> products =
        feed.useKeys(tile, getAcc(block.plan.tokens), [&](Value keyTile) {
          return SmallVector<Value>{multiplyKeys(keyTile)};
        });
    Value left =
        addScores(products.front(), tile, token, scores, softmax, state);
    SmallVector<Value> acc =
        feed.useValues(tile, state.acc.getType(), [&](Value valueTile) {
          return SmallVector<Value>{multiplyValues(left, valueTile, state.acc)};
        });
    state.acc = acc.front();
  }

  /// Rows of a latent tile are keys and values.
  void addLatentTile(Value tile, const TileScores &scores,
                     const OnlineSoftmax &softmax, SoftmaxState &state) {
    Value token = block.getToken(tile);
    SmallVector<Value> before = state.getValues();
    state = SoftmaxState(
        feed.useKeys(tile, ValueRange(before).getTypes(), [&](Value rows) {
          SoftmaxState next(before);
          Value left =
              addScores(multiplyKeys(rows), tile, token, scores, softmax, next);
          next.acc = multiplyValues(left, rows, next.acc);
          return next.getValues();
        }));
  }

  /// Returns the weights of a tile as a left operand.
  Value addScores(Value products, Value tile, Value token,
                  const TileScores &scores, const OnlineSoftmax &softmax,
                  SoftmaxState &state) {
    FragmentType type = team.getFragment(
        block.plan.tokens, feed.getValueElement(), FragmentLayout::MmaA16);
    return softmax.addScores(
        scores.apply(feed.scaleScores(products), tile, token), type, state,
        [&](Value weights) { return feed.scaleWeights(weights); });
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  bool keepsQueries() const { return block.keySize <= kMostKept; }

  Value loadQuery(Value column, int64_t columns) {
    return FragmentLoadOp::create(
        frame.builder, frame.loc,
        team.getFragment(columns, feed.getKeyElement(), FragmentLayout::MmaA16),
        queries.getTile(), team.getFirstRow(), column);
  }

  void loadQueries() {
    if (keepsQueries())
      kept = loadQuery(frame.index(0), block.keySize);
  }

  /// The products of queries and keys. Queries that registers have no room for
  /// are loaded for each MMA.
  Value multiplyKeys(Value keyTile) {
    if (keepsQueries())
      return b.wait(multiply(kept, keyTile, frame.index(0), Value(), Major::K));
    Value product;
    for (int64_t d = 0; d < block.keySize; d += kStep) {
      Value column = frame.index(d);
      product = multiply(loadQuery(column, kStep), keyTile, column, product,
                         Major::K);
    }
    return b.wait(product);
  }

  Value multiplyValues(Value left, Value valueTile, Value acc) {
    return b.wait(
        multiply(left, valueTile, team.getFirstColumn(), acc, Major::MN));
  }

  Value multiply(Value left, Value tile, Value column, Value acc, Major major) {
    FragmentType type =
        getAcc(major == Major::K ? block.plan.tokens : team.countColumns());
    return FragmentMmaOp::create(frame.builder, frame.loc,
                                 FragmentBuilder::getInFlight(type), left,
                                 /*a_row=*/Value(), /*a_column=*/Value(), tile,
                                 frame.index(0), column, acc,
                                 /*k=*/IntegerAttr(), Major::K, major);
  }

  Frame frame;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileFeed feed;
  QueryStage queries;
  ProductTeam team{block, kWarp, kRowsOfWarp};
  /// The queries of the warp, if it keeps them.
  Value kept;
};

} // namespace

void kvcache::tileMmaSync(AttentionOp op, const Frame &frame,
                          const TilePlan &plan) {
  MmaSyncKernel kernel(op, frame, plan);
  kernel.emit();
  if (op.getWorkspace())
    expandMerge(op, frame, plan, kernel.getBias());
}
