//===- DequantKernel.cpp - Attention over stored bytes --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantKernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "../PlanAttention/TileStaging.h"
#include "ElementScales.h"
#include "ProductTeam.h"
#include "QueryStage.h"
#include "SoftmaxLoop.h"
#include "TileFeed.h"
#include "TokenScales.h"
#include "WorkItems.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The values that products carry: for each group of elements of values that
/// has scales of its own, an accumulator, the power of two of its scales and
/// the last change of this power. Without scales, there is one accumulator.
struct ScaledAccs {
  MutableArrayRef<Value> accs, powers, changes;

  ScaledAccs(MutableArrayRef<Value> values, size_t numPowers)
      : accs(values.drop_back(2 * numPowers)),
        powers(values.slice(accs.size(), numPowers)),
        changes(values.take_back(numPowers)) {}
};

/// A block computes as many query rows as its config has: some tokens of a
/// sequence, for some heads of a group each. Each warp has 16 of the rows as
/// fragments, or a share of their values. All threads copy tiles of stored
/// elements of 8 or 4 bits, and warps multiply by them. Products with keys are
/// those of a group of elements each, times the scales of the group. Probs are
/// multiplied by the scales of values. Elements of 4 bits are multiplied by
/// their scales as they are dequantized.
class DequantKernel {
public:
  DequantKernel(AttentionOp op, const Frame &frame,
                const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc), items(kernel, block),
        keyScales(block, op.getKeyCache(), block.getSizes().keySize),
        // Warps that share the accumulator of a row share its only group.
        valueScales(block, op.getValues(), team.countColumns()),
        keyElements(block, op.getKeyCache(), block.getSizes().keySize),
        valueElements(block, op.getValues(), block.getSizes().valueSize),
        feed(block, b, items,
             keyScales.countGroups() || valueScales.countGroups() ||
                 keyElements.areNeeded() || valueElements.areNeeded()),
        queries(block, feed.getKeyElement(), countThreads(config)) {}

  /// The difference of a row's largest score and the exponent that its probs
  /// are relative to.
  float getBias() const {
    return getExponentBias(block.getOp(), block.getConfig());
  }

  void emit() {
    items.emit(countThreads(block.getConfig()),
               {[&](Value) { allocate(); }, [&] { return attendTokens(); },
                [&](const RowStates &states, WorkItemCode::Store store) {
                  forAccs(states, store);
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
    return team.getFragment(*block.getConfig().keys, frame.builder.getF32Type(),
                            FragmentLayout::MmaAcc);
  }
  FragmentType getAccType() const {
    return team.getFragment(
        team.countColumns() / countAccs(), frame.builder.getF32Type(),
        valueElements.areNeeded() ? FragmentLayout::MmaAccQuads
                                  : FragmentLayout::MmaAccPairs);
  }
  Value getFirstColumn(int64_t acc) const {
    return frame.add(team.getFirstColumn(),
                     frame.index(acc * getAccType().getColumns()));
  }

  void forAccs(const RowStates &states, WorkItemCode::Store store) {
    for (auto [i, acc] : llvm::enumerate(states.accs))
      store(FragmentResults(block, b, team.getFirstRow(),
                            getFirstColumn(static_cast<int64_t>(i))),
            {{acc}, states.reference, states.rowSum, states.bias});
  }

  void allocate() {
    queries.allocate();
    feed.allocate();
    keyScales.allocate();
    valueScales.allocate();
    keyElements.allocate();
    valueElements.allocate();
  }

  //===--------------------------------------------------------------------===//
  // Softmax
  //===--------------------------------------------------------------------===//

  /// The sums of the block's tokens.
  RowStates attendTokens() {
    Value tiles = block.findTiles(countThreads(block.getConfig()));
    feed.start(tiles);
    Value zero = frame.index(0);
    LoadedScales loaded = loadScales(zero, frame.below(zero, tiles));
    items.storeQueries(queries, tiles, /*isAsyncRead=*/false);
    FragmentType scoreType = getScoreType();
    TileScores scores(block, b, scoreType, team.getFirstRow(),
                      loadQueryFactors());
    SoftmaxLoop loop(b, block, feed, scores, getBias());
    loadQueries();
    SoftmaxState first = begin(loop.getSoftmax());
    storeScales(loaded, first);
    RowStates states = loop.run(first, tiles, getSteps(loop.getSoftmax()));
    states.accs = normalize(states.accs);
    return states;
  }

  /// The factors of products with query rows, or null.
  Value loadQueryFactors() {
    FragmentType rows = getScoreType().getRowType();
    Value factors = queries.loadFactors(b, rows, team.getFirstRow());
    if (!keyElements.areNeeded())
      return factors;
    Value power = DeviceMath(frame).constant(ElementScales::kInversePower);
    return factors ? multiply(factors, power) : b.splat(rows, power);
  }

  ProductSteps getSteps(const OnlineSoftmax &softmax) {
    ProductSteps steps;
    steps.multiplyKeys = [&](Value keyTile, Value tile) {
      return multiplyKeys(keyTile, tile);
    };
    steps.addScores = [&](Value scores, Value, SoftmaxState &state) {
      TileProbs added = softmax.addRows(scores, state);
      rescaleAccs(added.rescale, state);
      return added.probs;
    };
    steps.addValues = [&](Value probs, Value valueTile, Value tile,
                          SoftmaxState &state) {
      for (auto [i, acc] : llvm::enumerate(getAccs(state).accs))
        acc = multiplyValues(probs, valueTile, tile, static_cast<int64_t>(i),
                             acc);
    };
    // After the last tile, they are those of its last token again. Keeping them
    // live across the products with values costs registers.
    steps.loadNext = [&](Value tile) -> ProductSteps::Store {
      LoadedScales next =
          loadScales(frame.add(tile, frame.index(1)), /*condition=*/Value());
      return [this, next](SoftmaxState &state) { storeScales(next, state); };
    };
    return steps;
  }

  ScaledAccs getAccs(SoftmaxState &state) const {
    return ScaledAccs(state.products, valueScales.countGroups());
  }

  SoftmaxState begin(const OnlineSoftmax &softmax) const {
    SoftmaxState state = softmax.beginRows(getScoreType());
    state.products.append(countAccs(),
                          b.splat(getAccType(), DeviceMath(frame).constant(0)));
    int64_t powers = valueScales.countGroups();
    state.products.append(powers, ScalePowers(frame).getFirst());
    state.products.append(powers, DeviceMath(frame).constant(1));
    return state;
  }

  void rescaleAccs(Value rescale, SoftmaxState &state) const {
    ScaledAccs scaled = getAccs(state);
    for (auto [i, acc] : llvm::enumerate(scaled.accs)) {
      Value factor = rescale;
      if (valueScales.countGroups())
        factor = multiply(rescale, scaled.changes[i]);
      acc = b.multiply(acc, factor);
    }
  }

  /// Returns the accumulators without the powers of their scales.
  SmallVector<Value> normalize(SmallVector<Value> products) const {
    ScaledAccs scaled(products, valueScales.countGroups());
    for (auto [acc, power] : llvm::zip(scaled.accs, scaled.powers))
      acc = multiply(acc, ScalePowers(frame).invert(power));
    if (valueElements.areNeeded())
      for (Value &acc : scaled.accs)
        acc = multiply(
            acc, DeviceMath(frame).constant(ElementScales::kInversePower));
    return SmallVector<Value>(scaled.accs);
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
    LaneTokens keyElements, valueElements;
  };
  LoadedScales loadScales(Value tile, Value condition) {
    Value token = block.getToken(tile);
    return {keyScales.load(feed.getKeys(), tile, token, condition),
            valueScales.load(feed.getValues(), tile, token, condition),
            keyElements.load(feed.getKeys(), tile, token, condition),
            valueElements.load(feed.getValues(), tile, token, condition)};
  }

  /// Stores scales for the next tile, with powers for it.
  void storeScales(const LoadedScales &loaded, SoftmaxState &state) const {
    ScalePowers powers(frame);
    ScaledAccs scaled = getAccs(state);
    keyScales.store(loaded.keys);
    for (auto [i, power] : llvm::enumerate(scaled.powers)) {
      Value before = power;
      power = powers.include(before, loaded.values, static_cast<int64_t>(i));
      scaled.changes[i] = DeviceMath(frame).mul(power, powers.invert(before));
    }
    valueScales.store(loaded.values, scaled.powers);
    keyElements.store(loaded.keyElements);
    valueElements.store(loaded.valueElements);
  }

  /// Multiplies products or probs by the scales of a group, and adds them to
  /// `acc` unless it is null.
  Value scale(const TokenScales &scales, Value elements, Value tile,
              int64_t group, Value acc = {}) const {
    if (!scales.countGroups())
      return elements;
    SmallVector<Value> operands{
        elements, scales.loadFragment(b, getScoreType(), tile, group)};
    if (acc)
      operands.push_back(acc);
    return b.map(operands, [&](ValueRange element) {
      return acc ? DeviceMath(frame).fma(element[0], element[1], element[2])
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
    return b.load(team.getFragment(columns, feed.getKeyElement(),
                                   keyElements.areNeeded()
                                       ? FragmentLayout::MmaA16Quads
                                       : FragmentLayout::MmaA16Pairs),
                  queries.getTile(), team.getFirstRow(), frame.index(column),
                  LoadForm::Paired);
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
      return scale(keyScales, multiplyLongKeys(keyTile, tile), tile,
                   /*group=*/0);
    Value scores;
    for (auto [i, query] : llvm::enumerate(kept)) {
      auto group = static_cast<int64_t>(i);
      Value column = frame.index(group * countKeyColumns());
      Value product =
          b.wait(b.startProduct(getScoreType(), query, keyTile, column,
                                /*acc=*/Value(), Major::K,
                                /*isRowsFirst=*/false, keyElements.get(tile)));
      scores = scale(keyScales, product, tile, group, scores);
    }
    return scores;
  }

  Value multiplyLongKeys(Value keyTile, Value tile) const {
    // The columns of a load of keys: 32 bytes.
    int64_t packed = keyElements.areNeeded() ? FragmentMmaOp::kPacked : 1;
    int64_t step = 32 * packed;
    Value product;
    for (int64_t d = 0; d < block.getSizes().keySize; d += step)
      product = b.startProduct(getScoreType(), loadQuery(d, step), keyTile,
                               frame.index(d / packed), product, Major::K,
                               /*isRowsFirst=*/false, keyElements.get(tile));
    return b.wait(product);
  }

  Value multiplyValues(Value probs, Value valueTile, Value tile, int64_t group,
                       Value acc) const {
    FragmentType type =
        team.getFragment(*block.getConfig().keys, feed.getValueElement(),
                         FragmentLayout::MmaA16);
    Value left = ToOperandOp::create(frame.builder, frame.loc, type,
                                     scale(valueScales, probs, tile, group));
    Value column = getFirstColumn(group);
    if (valueElements.areNeeded())
      column = frame.div(column, FragmentMmaOp::kPacked);
    return b.wait(b.startProduct(getAccType(), left, valueTile, column, acc,
                                 Major::MN, /*isRowsFirst=*/false,
                                 valueElements.get(tile)));
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  ProductTeam team{block, kWarp, kRowsOfWarp};
  TokenScales keyScales, valueScales;
  ElementScales keyElements, valueElements;
  TileFeed feed;
  QueryStage queries;
  /// The queries of the warp for each group of elements, if it keeps them.
  SmallVector<Value> kept;
};

} // namespace

void kvcache::tileDequant(AttentionOp op, const Frame &frame,
                          const AttentionConfig &config) {
  DequantKernel(op, frame, config).emit();
}
