//===- DequantKernel.cpp - Attention over stored bytes --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantKernel.h"

#include "OnlineSoftmax.h"
#include "ProductTeam.h"
#include "QueryStage.h"
#include "TileFeed.h"
#include "TileScores.h"
#include "TokenScales.h"
#include "WorkItems.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The values that the loop over tiles carries: the largest score and the sum
/// of each row, and for each group of elements of values that has scales of its
/// own, an accumulator, the power of two of its scales and the last change of
/// this power. Without scales, there is one accumulator.
struct DequantState {
  SoftmaxState rows;
  SmallVector<Value> accs, powers, changes;

  DequantState(ValueRange values, size_t numAccs, size_t numPowers)
      : rows(values.take_front(2)), accs(values.slice(2, numAccs)),
        powers(values.slice(2 + numAccs, numPowers)),
        changes(values.take_back(numPowers)) {}
  SmallVector<Value> getValues() const {
    SmallVector<Value> values = rows.getValues();
    for (ArrayRef<Value> each : {accs, powers, changes})
      llvm::append_range(values, each);
    return values;
  }
};

/// A block computes as many query rows as its plan has: some tokens of a
/// sequence, for some heads of a group each. Each warp has 16 of the rows as
/// fragments, or a share of their values. All threads copy tiles of stored
/// elements of 8 bits, and warps multiply by them. Products with keys are those
/// of a group of elements each, times the scales of the group. Weights are
/// multiplied by the scales of values.
class DequantKernel {
public:
  DequantKernel(AttentionOp op, const Frame &frame, const TilePlan &plan)
      : frame(frame), grid(op, frame, plan), block(grid),
        b(frame.builder, frame.loc), items(grid, block), feed(block, items),
        queries(block, feed.getKeyElement(), plan.countThreads()),
        keyScales(block, op.getKeyCache(), block.getSizes().keySize),
        // Warps that share the sums of a row share its only group.
        valueScales(block, op.getValues(), team.countColumns()) {}

  /// The difference of a row's largest score and the exponent that its weights
  /// are relative to. Scales times their powers are below 4.
  float getBias() const {
    return valueScales.countGroups() ? kHalfBias - 2 : kHalfBias;
  }

  void emit() {
    items.emit(block.getPlan().countThreads(),
               {[&](Value) { allocate(); }, [&] { return attendTokens(); },
                [&](const RowSums &sums, WorkItemCode::Store store) {
                  forAccs(sums, store);
                }});
  }

private:
  //===--------------------------------------------------------------------===//
  // Warps
  //===--------------------------------------------------------------------===//

  int64_t countKeyColumns() const {
    return block.getSizes().keySize /
           std::max<int64_t>(keyScales.countGroups(), 1);
  }
  int64_t countAccs() const {
    return std::max<int64_t>(valueScales.countGroups(), 1);
  }
  FragmentType getScoreType() const {
    return team.getFragment(block.getPlan().tokens, frame.builder.getF32Type(),
                            FragmentLayout::MmaAcc);
  }
  FragmentType getAccType() const {
    return team.getFragment(team.countColumns() / countAccs(),
                            frame.builder.getF32Type(),
                            FragmentLayout::MmaAccPairs);
  }
  Value getFirstColumn(int64_t acc) const {
    return frame.add(team.getFirstColumn(),
                     frame.index(acc * getAccType().getColumns()));
  }

  void forAccs(RowSums sums, WorkItemCode::Store store) {
    for (auto [i, acc] : llvm::enumerate(accs)) {
      sums.acc = acc;
      store(FragmentResults(block, team.getFirstRow(),
                            getFirstColumn(static_cast<int64_t>(i))),
            sums);
    }
  }

  void allocate() {
    queries.allocate();
    feed.allocate();
    keyScales.allocate();
    valueScales.allocate();
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// The sums of the block's tokens, except the accumulators, which `accs`
  /// has.
  RowSums attendTokens() {
    Value tiles = block.findTiles(block.getPlan().countThreads());
    feed.start(tiles);
    Value zero = frame.index(0);
    LoadedScales loaded = loadScales(zero, frame.below(zero, tiles));
    items.storeQueries(queries, tiles, /*isAsyncRead=*/false);
    TileScores scores(
        block, getScoreType(), team.getFirstRow(),
        queries.loadFactors(getScoreType().getRowType(), team.getFirstRow()));
    OnlineSoftmax softmax(DeviceMath(frame), scores.getFactor(), getBias());
    loadQueries();
    DequantState first = begin(softmax);
    storeScales(loaded, first);
    DequantState state = makeState(
        softmax.forTiles(first.getValues(), tiles, block.getPlan().schedule,
                         [&](Value tile, SmallVector<Value> &values) {
                           DequantState next = makeState(values);
                           addTile(tile, scores, softmax, next);
                           values = next.getValues();
                         }));
    accs = normalize(state);
    return {/*acc=*/Value(), softmax.getReference(state.rows),
            softmax.getTotal(state.rows), getBias()};
  }

  DequantState makeState(ValueRange values) const {
    return DequantState(values, countAccs(), valueScales.countGroups());
  }

  DequantState begin(const OnlineSoftmax &softmax) const {
    SmallVector<Value> values = softmax.beginRows(getScoreType()).getValues();
    values.append(countAccs(),
                  b.splat(getAccType(), DeviceMath(frame).constant(0)));
    int64_t powers = valueScales.countGroups();
    values.append(powers, ScalePowers(frame).getFirst());
    values.append(powers, DeviceMath(frame).constant(1));
    return makeState(values);
  }

  void addTile(Value tile, const TileScores &scores,
               const OnlineSoftmax &softmax, DequantState &state) {
    // Other lanes have stored the scales of the tile.
    bool hasScales = keyScales.countGroups() || valueScales.countGroups();
    if (hasScales && !block.ids)
      gpu::BarrierOp::create(frame.builder, frame.loc);
    feed.begin(tile);
    // After the last tile, they are those of its last token again.
    LoadedScales next =
        loadScales(frame.add(tile, frame.index(1)), /*condition=*/Value());
    SmallVector<Value> products =
        feed.useKeys(tile, getScoreType(), [&](Value keyTile) {
          return SmallVector<Value>{multiplyKeys(keyTile, tile)};
        });
    auto [weights, rescale] = softmax.addRows(
        scores.apply(products.front(), tile, block.getToken(tile)), state.rows);
    rescaleAccs(rescale, state);
    // Scales have arrived, and keeping them live across the products with
    // values costs registers.
    storeScales(next, state);
    SmallVector<Type> types(countAccs(), getAccType());
    state.accs = feed.useValues(tile, types, [&](Value valueTile) {
      SmallVector<Value> added;
      for (auto [i, acc] : llvm::enumerate(state.accs))
        added.push_back(multiplyValues(weights, valueTile, tile,
                                       static_cast<int64_t>(i), acc));
      return added;
    });
    feed.end();
  }

  void rescaleAccs(Value rescale, DequantState &state) const {
    for (auto [i, acc] : llvm::enumerate(state.accs)) {
      Value factor = rescale;
      if (valueScales.countGroups())
        factor = multiply(rescale, state.changes[i]);
      acc = b.multiply(acc, factor);
    }
  }

  /// The accumulators without the powers of their scales.
  SmallVector<Value> normalize(const DequantState &state) const {
    SmallVector<Value> normal = state.accs;
    for (auto [acc, power] : llvm::zip(normal, state.powers))
      acc = multiply(acc, ScalePowers(frame).invert(power));
    return normal;
  }

  Value multiply(Value fragment, Value number) const {
    return b.map(fragment, [&](ValueRange element) {
      return DeviceMath(frame).mul(element[0], number);
    });
  }

  //===--------------------------------------------------------------------===//
  // Scales
  //===--------------------------------------------------------------------===//

  /// The scales of a tile of keys and of values, in registers.
  struct LoadedScales {
    TokenScales::Loaded keys, values;
  };
  LoadedScales loadScales(Value tile, Value condition) {
    Value token = block.getToken(tile);
    return {keyScales.load(feed.getKeys(), tile, token, condition),
            valueScales.load(feed.getValues(), tile, token, condition)};
  }

  /// Stores scales for the next tile, with powers for it.
  void storeScales(const LoadedScales &loaded, DequantState &state) const {
    ScalePowers powers(frame);
    keyScales.store(loaded.keys);
    for (auto [i, power] : llvm::enumerate(state.powers)) {
      Value before = power;
      power = powers.include(before, loaded.values, static_cast<int64_t>(i));
      state.changes[i] = DeviceMath(frame).mul(power, powers.invert(before));
    }
    valueScales.store(loaded.values, state.powers);
  }

  /// Multiplies products or weights by the scales of a group, and adds them to
  /// sums if there are any.
  Value scale(const TokenScales &scales, Value elements, Value tile,
              int64_t group, Value sums = {}) const {
    if (!scales.countGroups())
      return elements;
    SmallVector<Value> operands{
        elements, scales.loadFragment(getScoreType(), tile, group)};
    if (sums)
      operands.push_back(sums);
    return b.map(operands, [&](ValueRange element) {
      return sums ? DeviceMath(frame).fma(element[0], element[1], element[2])
                  : DeviceMath(frame).mul(element[0], element[1]);
    });
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// Whether registers have room for the queries of a warp.
  bool keepsQueries() const {
    constexpr int64_t most = 128;
    return block.getSizes().keySize <= most;
  }

  Value loadQuery(int64_t column, int64_t columns) const {
    return FragmentLoadOp::create(
        frame.builder, frame.loc,
        team.getFragment(columns, feed.getKeyElement(),
                         FragmentLayout::MmaA16Pairs),
        queries.getTile(), team.getFirstRow(), frame.index(column),
        /*repeated=*/false, /*paired=*/true);
  }

  void loadQueries() {
    kept.clear();
    int64_t columns = countKeyColumns();
    for (int64_t d = 0; keepsQueries() && d < block.getSizes().keySize;
         d += columns)
      kept.push_back(loadQuery(d, columns));
  }

  Value multiplyKeys(Value keyTile, Value tile) const {
    if (!keepsQueries())
      return scale(keyScales, multiplyLongKeys(keyTile), tile, /*group=*/0);
    Value scores;
    for (auto [i, query] : llvm::enumerate(kept)) {
      auto group = static_cast<int64_t>(i);
      Value column = frame.index(group * countKeyColumns());
      Value product =
          b.wait(b.startProduct(getScoreType(), query, keyTile, column,
                                /*acc=*/Value(), Major::K));
      scores = scale(keyScales, product, tile, group, scores);
    }
    return scores;
  }

  Value multiplyLongKeys(Value keyTile) const {
    // The columns of a load of keys.
    constexpr int64_t step = 32;
    Value product;
    for (int64_t d = 0; d < block.getSizes().keySize; d += step)
      product = b.startProduct(getScoreType(), loadQuery(d, step), keyTile,
                               frame.index(d), product, Major::K);
    return b.wait(product);
  }

  Value multiplyValues(Value weights, Value valueTile, Value tile,
                       int64_t group, Value acc) const {
    FragmentType type = team.getFragment(
        block.getPlan().tokens, feed.getValueElement(), FragmentLayout::MmaA16);
    Value left = ToOperandOp::create(frame.builder, frame.loc, type,
                                     scale(valueScales, weights, tile, group));
    return b.wait(b.startProduct(getAccType(), left, valueTile,
                                 getFirstColumn(group), acc, Major::MN));
  }

  Frame frame;
  TileGrid grid;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  TileFeed feed;
  QueryStage queries;
  ProductTeam team{block, kWarp, kRowsOfWarp};
  TokenScales keyScales, valueScales;
  /// The queries of the warp for each group of elements, if it keeps them.
  SmallVector<Value> kept;
  /// The accumulators after the last tile.
  SmallVector<Value> accs;
};

} // namespace

void kvcache::tileDequant(AttentionOp op, const Frame &frame,
                          const TilePlan &plan) {
  emitWithMerge<DequantKernel>(op, frame, plan);
}
