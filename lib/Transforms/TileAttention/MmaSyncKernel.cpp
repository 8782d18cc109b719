//===- MmaSyncKernel.cpp - Attention of warps over fragments --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaSyncKernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "ProductTeam.h"
#include "QueryStage.h"
#include "SoftmaxLoop.h"
#include "TileFeed.h"
#include "WorkItems.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Columns of an MMA's left operand.
constexpr int64_t kStep = 16;
/// Elements of a query up to which a warp keeps its rows in registers.
constexpr int64_t kMostKept = 128;

/// A block computes as many query rows as its config has: some tokens of a
/// sequence, for some heads of a group each. Each warp has 16 of the rows as
/// fragments, or a share of their values. All threads bring tiles of keys
/// and values, while they compute with the tiles before.
class MmaSyncKernel {
public:
  MmaSyncKernel(AttentionOp op, const Frame &frame,
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
                  if (!keepsQueries() && block.ids &&
                      !isPersistent(block.getConfig()))
                    b.recomputePlaces();
                  store(getResults(), states);
                }});
  }

private:
  //===--------------------------------------------------------------------===//
  // Warps
  //===--------------------------------------------------------------------===//

  FragmentResults getResults() {
    return FragmentResults(block, b, team.getFirstRow(), team.getFirstColumn());
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
  RowStates attendTokens() {
    // The places of long rows take many registers.
    if (isPersistent(block.getConfig()) && !keepsQueries())
      b.placeBy(block.rows.work.thread);
    TileScores scores(block, b, getAcc(*block.getConfig().keys),
                      team.getFirstRow());
    SoftmaxLoop loop(b, block, feed, scores, getBias());
    const OnlineSoftmax &softmax = loop.getSoftmax();
    Value tiles = block.findTiles(countThreads(block.getConfig()));
    feed.start(tiles);
    items.storeQueries(queries, tiles, /*isAsyncRead=*/false);
    loadQueries();
    FragmentType operand =
        team.getFragment(*block.getConfig().keys, feed.getValueElement(),
                         FragmentLayout::MmaA16);
    return loop.run(
        softmax.begin(getAcc(team.countColumns())), tiles,
        {[&](Value keyTile, Value) { return multiplyKeys(keyTile); },
         [&](Value tileScores, Value, SoftmaxState &state) {
           return softmax.addScores(tileScores, state, [&](Value probs) {
             return b.toOperand(operand, feed.scaleProbs(probs));
           });
         },
         [&](Value probs, Value valueTile, Value, SoftmaxState &state) {
           state.getAcc() = multiplyValues(probs, valueTile, state.getAcc());
         }});
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  bool keepsQueries() const { return block.getSizes().keySize <= kMostKept; }

  Value loadQuery(Value column, int64_t columns) {
    return b.load(
        team.getFragment(columns, feed.getKeyElement(), FragmentLayout::MmaA16),
        queries.getTile(), team.getFirstRow(), column);
  }

  void loadQueries() {
    if (keepsQueries())
      kept = loadQuery(frame.index(0), block.getSizes().keySize);
  }

  /// The products of queries and keys. Queries that registers have no room for
  /// are loaded for each MMA.
  Value multiplyKeys(Value keyTile) {
    if (keepsQueries())
      return b.wait(multiply(kept, keyTile, frame.index(0), Value(), Major::K));
    Value product;
    for (int64_t d = 0; d < block.getSizes().keySize; d += kStep) {
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
    FragmentType type = getAcc(major == Major::K ? *block.getConfig().keys
                                                 : team.countColumns());
    // Rows that threads convert are keys and values: more addresses would spill
    // beside the conversion (ptxas 13.0).
    bool isShared =
        major == Major::K && feed.areLatent() && !feed.getKeys().isCopied();
    return b.startProduct(type, left, tile, column, acc, major, isShared);
  }

  Frame frame;
  KernelContext kernel;
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
                          const AttentionConfig &config) {
  MmaSyncKernel(op, frame, config).emit();
}
