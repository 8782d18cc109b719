//===- MmaSyncKernel.cpp - Attention of warps over fragments --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaSyncKernel.h"

#include "OnlineSoftmax.h"
#include "QueryStage.h"
#include "TileScores.h"
#include "WorkItems.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
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
/// fragments, or a share of their values. All threads copy tiles of keys and
/// values into pipes, while they compute with the tiles before.
class MmaSyncKernel {
public:
  MmaSyncKernel(AttentionOp op, const Frame &frame, const TilePlan &plan)
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
                  store(getResults(), sums);
                }});
  }

private:
  //===--------------------------------------------------------------------===//
  // Warps
  //===--------------------------------------------------------------------===//

  int64_t countColumns() const { return block.valueSize / block.plan.parts; }
  Value getWarp() { return frame.div(block.thread, kWarp); }
  /// The first row of the warp in the block.
  Value getFirstRow() {
    return frame.mul(frame.div(getWarp(), block.plan.parts), kRowsOfWarp);
  }
  /// The first element of values whose sums the warp has.
  Value getFirstColumn() {
    return frame.mul(frame.rem(getWarp(), block.plan.parts), countColumns());
  }
  FragmentResults getResults() {
    return FragmentResults(block, getFirstRow(), getFirstColumn());
  }

  FragmentType getFragment(int64_t columns, Type element,
                           FragmentLayout layout) const {
    return FragmentType::get(frame.builder.getContext(), {kRowsOfWarp, columns},
                             element, layout, /*partial=*/false);
  }
  FragmentType getAcc(int64_t columns) const {
    return getFragment(columns, frame.builder.getF32Type(),
                       FragmentLayout::MmaAcc);
  }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  void allocate() {
    queries.allocate();
    keys.allocate();
    values.allocate();
    if (int64_t registers = block.plan.registers)
      keys.getPipe().getDefiningOp<PipeOp>().setConsumerRegisters(registers);
    if (block.list)
      block.list->allocate();
  }

  void produce(Value tile) { items.produce(tile, tiles, {&keys, &values}); }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// The sums of the block's tokens.
  RowSums attendTokens() {
    TileScores scores(block, getAcc(block.plan.tokens), getFirstRow());
    OnlineSoftmax softmax(block.f, scores.getFactor(), getBias());
    tiles = block.findTiles(block.plan.countThreads());
    for (int64_t i = 0; i < block.plan.countAhead(); ++i)
      produce(frame.index(i));
    // The copies take longer than the next work item.
    Value taken = block.schedule ? block.schedule->take() : Value();
    queries.store(/*count=*/Value());
    gpu::BarrierOp::create(frame.builder, frame.loc);
    if (block.schedule)
      block.schedule->store(taken, frame.toI32(items.getUse(tiles)));
    loadQueries();
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
    produce(frame.add(tile, frame.index(block.plan.countAhead())));
    Value token = block.getToken(tile);
    Value products =
        b.consume(keys.getPipe(), items.getUse(tile), getAcc(block.plan.tokens),
                  [&](Value keyTile) { return multiplyKeys(keyTile); });
    Value left =
        softmax.addScores(scores.apply(products, tile, token),
                          getFragment(block.plan.tokens, values.getLane(),
                                      FragmentLayout::MmaA16),
                          state);
    state.acc = b.consume(
        values.getPipe(), items.getUse(tile), state.acc.getType(),
        [&](Value valueTile) {
          values.clearUnseen(block.thread, valueTile, token, block.tokens);
          return b.wait(multiply(left, valueTile, /*column=*/getFirstColumn(),
                                 state.acc, Major::MN));
        });
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  bool keepsQueries() const { return block.keySize <= kMostKept; }

  Value loadQuery(Value column, int64_t columns) {
    return FragmentLoadOp::create(
        frame.builder, frame.loc,
        getFragment(columns, keys.getLane(), FragmentLayout::MmaA16),
        queries.getTile(), getFirstRow(), column);
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

  Value multiply(Value left, Value tile, Value column, Value acc, Major major) {
    FragmentType type =
        getAcc(major == Major::K ? block.plan.tokens : countColumns());
    return FragmentMmaOp::create(frame.builder, frame.loc,
                                 FragmentBuilder::getInFlight(type), left,
                                 /*a_row=*/Value(), /*a_column=*/Value(), tile,
                                 frame.index(0), column, acc,
                                 /*k=*/IntegerAttr(), Major::K, major);
  }

  Frame frame;
  TileRows block;
  FragmentBuilder b;
  TiledCache keys, values;
  QueryStage queries;
  /// The queries of the warp, if it keeps them.
  Value kept;
  /// The number of tiles.
  Value tiles;
  WorkItems items{block};
};

} // namespace

void kvcache::tileMmaSync(AttentionOp op, const Frame &frame,
                          const TilePlan &plan) {
  MmaSyncKernel kernel(op, frame, plan);
  kernel.emit();
  if (op.getWorkspace())
    expandMerge(op, frame, plan, kernel.getBias());
}
