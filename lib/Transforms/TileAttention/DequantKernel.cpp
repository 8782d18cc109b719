//===- DequantKernel.cpp - Attention over stored bytes --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DequantKernel.h"

#include "../Builders/Heads.h"
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
/// the last change of this power. Without scales, there is one accumulator. For
/// each group with zero points, there are sums of these times probs, of each
/// row.
struct ScaledAccs {
  MutableArrayRef<Value> accs, powers, changes, zeroSums;

  ScaledAccs(MutableArrayRef<Value> values, size_t numPowers, size_t numSums)
      : accs(values.drop_back(2 * numPowers + numSums)),
        powers(values.slice(accs.size(), numPowers)),
        changes(values.slice(accs.size() + numPowers, numPowers)),
        zeroSums(values.take_back(numSums)) {}
};

/// A block computes as many query rows as its config has: some tokens of a
/// sequence, for some heads of a group each. Each warp has 16 of the rows as
/// fragments, or a share of their values. All threads copy tiles of stored
/// elements of 8 or 4 bits, and warps multiply by them. Products with keys are
/// those of a group of elements each, times the scales of the group. Probs are
/// multiplied by the scales of values. Elements of NVFP4 are multiplied by
/// their scales as they are dequantized.
///
/// With zero points, a score is also the sum of the elements of the query in
/// each group, times the zero points of the token. An output is also the sum of
/// probs times zero points.
class DequantKernel {
public:
  DequantKernel(AttentionOp op, const Frame &frame,
                const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc), items(kernel, block),
        keyScales(block, op.getKeyCache(), block.getSizes().keySize),
        // Warps that share the accumulator of a row share its only group.
        valueScales(block, op.getValues(), team.countColumns()),
        keyZeros(block, op.getKeyCache(), block.getSizes().keySize,
                 GroupNumbers::ZeroPoints),
        valueZeros(block, op.getValues(), team.countColumns(),
                   GroupNumbers::ZeroPoints),
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

  int64_t countKeyGroups() const {
    return std::max<int64_t>(keyScales.countGroups(), 1);
  }
  int64_t countKeyColumns() const {
    return block.getSizes().keySize / countKeyGroups();
  }
  /// Elements of keys in a stored element.
  int64_t countPacked() const {
    return keyElements.arePacked() ? FragmentMmaOp::kPacked : 1;
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
        valueElements.arePacked() ? FragmentLayout::MmaAccQuads
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
    keyZeros.allocate();
    valueZeros.allocate();
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
    if (!keyElements.arePacked())
      return factors;
    Value power = DeviceMath(frame).constant(keyElements.getInversePower());
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
      ScaledAccs scaled = getAccs(state);
      // The operands of products are fewer registers than probs.
      for (auto [i, sum] : llvm::enumerate(scaled.zeroSums))
        sum = addValueZeros(probs, tile, static_cast<int64_t>(i), sum);
      for (auto [i, acc] : llvm::enumerate(scaled.accs))
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

  ScaledAccs getAccs(MutableArrayRef<Value> products) const {
    return ScaledAccs(products, valueScales.countGroups(),
                      valueZeros.countGroups());
  }
  ScaledAccs getAccs(SoftmaxState &state) const {
    return getAccs(state.products);
  }

  SoftmaxState begin(const OnlineSoftmax &softmax) const {
    SoftmaxState state = softmax.beginRows(getScoreType());
    state.products.append(countAccs(),
                          b.splat(getAccType(), DeviceMath(frame).constant(0)));
    int64_t powers = valueScales.countGroups();
    state.products.append(powers, ScalePowers(frame).getFirst());
    state.products.append(powers, DeviceMath(frame).constant(1));
    state.products.append(valueZeros.countGroups(),
                          b.splat(getScoreType().getRowType(/*isPartial=*/true),
                                  DeviceMath(frame).constant(0)));
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
    for (Value &sum : scaled.zeroSums)
      sum = b.multiply(sum, rescale);
  }

  /// Returns the accumulators without the powers of their scales and elements,
  /// and with zero points.
  SmallVector<Value> normalize(SmallVector<Value> products) const {
    DeviceMath f(frame);
    ScaledAccs scaled = getAccs(products);
    for (auto [acc, power] : llvm::zip(scaled.accs, scaled.powers))
      acc = multiply(acc, ScalePowers(frame).invert(power));
    if (valueElements.arePacked())
      for (Value &acc : scaled.accs)
        acc = multiply(acc, f.constant(valueElements.getInversePower()));
    for (auto [acc, sum] : llvm::zip(scaled.accs, scaled.zeroSums)) {
      Value complete = b.reduce(Reduction::AddF, sum, /*init=*/Value(),
                                getScoreType().getRowType());
      acc = b.map({acc, complete}, [&](ValueRange element) {
        return f.add(element[0], element[1]);
      });
    }
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
    LaneTokens keys, values, keyZeros, valueZeros, keyElements, valueElements;
  };
  LoadedScales loadScales(Value tile, Value condition) {
    Value token = block.getToken(tile);
    return {keyScales.load(feed.getKeys(), tile, token, condition),
            valueScales.load(feed.getValues(), tile, token, condition),
            keyZeros.load(feed.getKeys(), tile, token, condition),
            valueZeros.load(feed.getValues(), tile, token, condition),
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
    keyZeros.store(loaded.keyZeros);
    valueZeros.store(loaded.valueZeros);
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

  /// Whether registers have room for the queries of a warp, beside zero points.
  bool keepsQueries() const {
    int64_t most = keyZeros.countGroups() ? 96 : 128;
    return block.getSizes().keySize <= most;
  }

  Value loadQuery(int64_t column, int64_t columns) const {
    return b.load(team.getFragment(columns, feed.getKeyElement(),
                                   keyElements.arePacked()
                                       ? FragmentLayout::MmaA16Quads
                                       : FragmentLayout::MmaA16Pairs),
                  queries.getTile(), team.getFirstRow(), frame.index(column),
                  LoadForm::Paired);
  }

  void loadQueries() {
    kept.clear();
    querySums.clear();
    int64_t columns = countKeyColumns();
    for (int64_t d = 0; keepsQueries() && d < block.getSizes().keySize;
         d += columns)
      kept.push_back(loadQuery(d, columns));
    for (int64_t i = 0; i < keyZeros.countGroups(); ++i)
      querySums.push_back(sumQuery(i * columns, columns));
  }

  /// The sums of columns of queries, with the power of two of products. The
  /// order of columns in 32 of them does not matter.
  Value sumQuery(int64_t first, int64_t columns) const {
    constexpr int64_t step = FragmentMmaOp::kPackedColumns;
    FragmentType part =
        team.getFragment(step, feed.getKeyElement(), FragmentLayout::MmaAcc);
    Type f32 = frame.builder.getF32Type();
    Value sum;
    for (int64_t d = first; d < first + columns; d += step) {
      Value loaded =
          b.load(part, queries.getTile(), team.getFirstRow(), frame.index(d));
      Value wide = b.map(
          loaded,
          [&](ValueRange element) {
            return convertLanes(frame, element[0], f32);
          },
          /*origin=*/{}, f32);
      sum = b.reduce(Reduction::AddF, wide, sum,
                     getScoreType().getRowType(/*isPartial=*/true));
    }
    sum = b.reduce(Reduction::AddF, sum, /*init=*/Value(),
                   getScoreType().getRowType());
    return multiply(
        sum, DeviceMath(frame).constant(1 / keyElements.getInversePower()));
  }

  /// Adds the sums of queries times the zero points of a group to scores.
  Value addKeyZeros(Value scores, Value tile, int64_t group) const {
    if (!keyZeros.countGroups())
      return scores;
    Value zeros = keyZeros.loadFragment(b, getScoreType(), tile, group);
    return b.map({zeros, querySums[group], scores}, [&](ValueRange element) {
      return DeviceMath(frame).fma(element[0], element[1], element[2]);
    });
  }

  /// Adds probs times the zero points of a group to the sums of rows.
  Value addValueZeros(Value probs, Value tile, int64_t group, Value sum) const {
    return b.reduce(Reduction::AddF, scale(valueZeros, probs, tile, group), sum,
                    getScoreType().getRowType(/*isPartial=*/true));
  }

  Value multiplyKeys(Value keyTile, Value tile) const {
    Value scores;
    for (int64_t group = 0; group < countKeyGroups(); ++group) {
      Value product = multiplyGroup(keyTile, tile, group);
      scores = addKeyZeros(scale(keyScales, product, tile, group, scores), tile,
                           group);
    }
    return scores;
  }

  /// The products of a group of elements.
  Value multiplyGroup(Value keyTile, Value tile, int64_t group) const {
    // The columns of a load of keys: 32 bytes.
    int64_t columns = countKeyColumns(), loaded = 32 * countPacked();
    int64_t step = keepsQueries() ? columns : std::min(columns, loaded);
    int64_t first = group * columns;
    Value product;
    for (int64_t d = first; d < first + columns; d += step) {
      Value query = keepsQueries() ? kept[group] : loadQuery(d, step);
      product = b.startProduct(
          getScoreType(), query, keyTile, frame.index(d / countPacked()),
          product, Major::K, /*isRowsFirst=*/false, keyElements.get(tile));
    }
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
    if (valueElements.arePacked())
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
  TokenScales keyScales, valueScales, keyZeros, valueZeros;
  ElementScales keyElements, valueElements;
  TileFeed feed;
  QueryStage queries;
  /// The queries of the warp for each group of elements, if it keeps them.
  SmallVector<Value> kept;
  /// The sums of queries in each group of elements, if keys have zero points.
  SmallVector<Value> querySums;
};

} // namespace

void kvcache::tileDequant(AttentionOp op, const Frame &frame,
                          const AttentionConfig &config) {
  DequantKernel(op, frame, config).emit();
}
