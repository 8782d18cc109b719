//===- WgmmaKernel.cpp - Attention of warpgroups over fragments -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WgmmaKernel.h"

#include "../ExpandOps/WarpgroupCores.h"
#include "OnlineSoftmax.h"
#include "QueryStage.h"
#include "TileScores.h"
#include "WorkItems.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block computes as many query rows as its plan has: some tokens of a
/// sequence, for some heads of a group each. Each warpgroup has 64 of the rows
/// as fragments, or a share of their values. All threads copy tiles of keys and
/// values into pipes, while scores are computed.
class WgmmaKernel {
public:
  WgmmaKernel(AttentionOp op, const Frame &frame, const TilePlan &plan)
      : frame(frame), block(op, frame, plan), b(frame.builder, frame.loc),
        keys(frame, op, op.getKeyCache(), block.keySize, plan),
        values(frame, op, op.getValues(), block.valueSize, plan),
        queries(block, keys.getLane(), plan.countThreads()) {}

  /// The difference of a row's largest score and the exponent that its weights
  /// are relative to.
  float getBias() const { return values.getLane().isF16() ? kHalfBias : 0; }

  void emit() {
    items.emit(block.plan.countThreads(),
               {[&] { allocate(); }, [&] { return attendTokens(); },
                [&](const RowSums &sums, WorkItemCode::Store store) {
                  store(FragmentResults(block, getFirstRow(), getFirstColumn()),
                        sums);
                }});
  }

private:
  int64_t countColumns() const { return block.valueSize / block.plan.parts; }
  Value getGroup() { return frame.div(block.thread, kWarpgroup); }
  /// The first row of the warpgroup in the block.
  Value getFirstRow() {
    return frame.mul(frame.div(getGroup(), block.plan.parts), kRowsOfWarpgroup);
  }
  /// The first element of values whose sums the warpgroup has.
  Value getFirstColumn() {
    return frame.mul(frame.rem(getGroup(), block.plan.parts), countColumns());
  }

  FragmentType getFragment(int64_t columns, Type element,
                           FragmentLayout layout) const {
    return FragmentType::get(frame.builder.getContext(),
                             {kRowsOfWarpgroup, columns}, element, layout,
                             /*partial=*/false);
  }
  FragmentType getAcc(int64_t columns) const {
    return getFragment(columns, frame.builder.getF32Type(),
                       FragmentLayout::WgmmaAcc);
  }
  FragmentType getScoreType() const { return getAcc(block.plan.tokens); }

  /// Whether rows of one cache are keys, and their first elements values.
  bool isLatent() { return !block.op.getValueCache(); }

  void allocate() {
    queries.allocate();
    keys.allocate();
    if (!isLatent())
      values.allocate();
    if (block.list)
      block.list->allocate();
  }

  void produce(Value tile) {
    isLatent() ? items.produce(tile, tiles, {&keys})
               : items.produce(tile, tiles, {&keys, &values});
  }

  /// The sums of the block's tokens.
  RowSums attendTokens() {
    TileScores scores(block, getScoreType(), getFirstRow());
    OnlineSoftmax softmax(block.f, scores.getFactor(), getBias());
    tiles = block.findTiles(block.plan.countThreads());
    for (int64_t i = 0; i < block.plan.countAhead(); ++i)
      produce(frame.index(i));
    // The copies take longer than the next work item.
    Value taken = block.schedule ? block.schedule->take() : Value();
    queries.store(/*count=*/Value());
    WarpgroupCores(frame).emitFence();
    gpu::BarrierOp::create(frame.builder, frame.loc);
    if (block.schedule)
      block.schedule->store(taken, frame.toI32(items.getUse(tiles)));
    SoftmaxState state = softmax.forTiles(
        softmax.begin(getAcc(countColumns())), tiles, block.plan.schedule,
        [&](Value tile, SoftmaxState &state) {
          addTile(tile, scores, softmax, state);
        });
    return {state.acc, softmax.getReference(state), softmax.getTotal(state),
            getBias()};
  }

  void addTile(Value tile, const TileScores &scores,
               const OnlineSoftmax &softmax, SoftmaxState &state) {
    // The only tile is copied when all have used the one before.
    if (block.plan.countAhead() == 0)
      produce(tile);
    Value token = block.getToken(tile), use = items.getUse(tile);
    auto addScores = [&](Value products) {
      return softmax.addScores(scores.apply(products, tile, token),
                               getFragment(block.plan.tokens, values.getLane(),
                                           FragmentLayout::WgmmaA16),
                               state);
    };
    if (isLatent()) {
      SmallVector<Value> before = state.getValues();
      state = SoftmaxState(b.consumeAll(
          keys.getPipe(), use, TypeRange(ValueRange(before)),
          [&](Value keyTile) {
            keys.clearUnseen(block.thread, keyTile, token, block.tokens);
            Value left = addScores(multiplyKeys(keyTile, tile));
            state.acc = addValues(left, keyTile, state.acc);
            return state.getValues();
          }));
      return;
    }
    Value left = addScores(
        b.consume(keys.getPipe(), use, getScoreType(),
                  [&](Value keyTile) { return multiplyKeys(keyTile, tile); }));
    state.acc = b.consume(
        values.getPipe(), use, state.acc.getType(), [&](Value valueTile) {
          values.clearUnseen(block.thread, valueTile, token, block.tokens);
          return addValues(left, valueTile, state.acc);
        });
  }

  /// The products of queries and keys. The next tiles are copied meanwhile.
  Value multiplyKeys(Value keyTile, Value tile) {
    Value zero = frame.index(0);
    Value started = FragmentMmaOp::create(
        frame.builder, frame.loc, FragmentBuilder::getInFlight(getScoreType()),
        queries.getTile(), getFirstRow(), zero, keyTile, zero, zero,
        /*accumulator=*/Value(),
        frame.builder.getI64IntegerAttr(block.keySize));
    if (int64_t ahead = block.plan.countAhead())
      produce(frame.add(tile, frame.index(ahead)));
    return b.wait(started);
  }

  Value addValues(Value weights, Value valueTile, Value acc) {
    return b.wait(FragmentMmaOp::create(
        frame.builder, frame.loc,
        FragmentBuilder::getInFlight(cast<FragmentType>(acc.getType())),
        weights, /*a_row=*/Value(), /*a_column=*/Value(), valueTile,
        frame.index(0), getFirstColumn(), acc, /*k=*/IntegerAttr(), Major::K,
        Major::MN));
  }

  Frame frame;
  TileRows block;
  FragmentBuilder b;
  TiledCache keys, values;
  QueryStage queries;
  /// The number of tiles.
  Value tiles;
  WorkItems items{block};
};

} // namespace

void kvcache::tileWgmma(AttentionOp op, const Frame &frame,
                        const TilePlan &plan) {
  WgmmaKernel kernel(op, frame, plan);
  kernel.emit();
  if (op.getWorkspace())
    expandMerge(op, frame, plan, kernel.getBias());
}
