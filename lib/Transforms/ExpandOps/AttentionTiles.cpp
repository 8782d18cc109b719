//===- AttentionTiles.cpp - Expand kvcache.attention for tensor cores -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "QueryTile.h"
#include "TileResults.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block computes as many query rows as its plan has: some tokens of a
/// sequence, for some heads of a group each. Each warp multiplies fragments of
/// 16 of these rows, or a part of their values. Tiles of keys and values lie in
/// shared memory, those of a latent cache once for both, and all warps read
/// each of them. Softmax is online, and in base 2. A result does not depend on
/// other sequences.
///
/// With sparse rows, a block has one token, and tiles are gathered by ids. What
/// is said of tokens is true of the columns of ids.
///
/// With a workspace, the tokens of sequences of few rows are split into parts,
/// which another launch merges.
class TiledAttention : TileResults {
public:
  using TileResults::getWeightBias;

  TiledAttention(AttentionOp op, const Frame &frame, const TilePlan &plan)
      : TileResults(op, frame, plan), partSize(valueSize / plan.parts),
        keys(frame, op, op.getKeyCache(), keySize, plan),
        values(frame, op, op.getValues(), valueSize, plan),
        queries(frame, getQueries(), keys.getLane(), plan.rows, keySize) {}

  void expand() {
    forTiles(
        getThreads(), [&] { allocate(); },
        [&](const TileWork &work) { attendUnit(work); });
  }

private:
  using State = TileState;

  int64_t getThreads() const { return plan.countThreads(); }

  /// Finds the rows and the values of a warp. Warps that share rows follow one
  /// another.
  void placeWarp() {
    Value warp = frame.div(thread, kWarp);
    firstRow = frame.mul(frame.div(warp, plan.parts), kRowsOfWarp);
    firstSum = frame.mul(frame.rem(warp, plan.parts), partSize);
  }

  /// The caches that have tiles: latent rows are keys and values.
  SmallVector<TiledCache *> getSides() {
    return op.getValueCache() ? SmallVector<TiledCache *>{&keys, &values}
                              : SmallVector<TiledCache *>{&keys};
  }

  bool hasCopies() {
    return llvm::any_of(getSides(),
                        [](auto *side) { return side->hasCopies(); });
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  void attendUnit(const TileWork &work) {
    if (schedule)
      return attendScheduled(work);
    findSequence(work);
    Value isOurs = frame.below(first, rows.count);
    if (workspace)
      isOurs = arith::AndIOp::create(builder, loc, isOurs,
                                     hasRows(work.isWhole, rows.count));
    frame.runIf(isOurs, [&] {
      findRows(work);
      attendBlock(work);
    });
  }

  /// A schedule has only work that is there. What a unit ends with is found
  /// twice: registers that kept it would be missing in the loop over tiles.
  void attendScheduled(const TileWork &work) {
    placeWork(work);
    // As many uses of pipes have the same slots and phases.
    firstUse = frame.rem(frame.fromI32(work.carried),
                         2 * plan.stages * std::max<int64_t>(plan.raw, 1));
    State state = attendTokens();
    TileWork same = findWorkAgain();
    placeWork(same);
    endPart(same, state);
  }

  void placeWork(const TileWork &work) {
    findSequence(work);
    findRows(work);
    placeLane();
    findTokens();
    split = TokenSplit::find(*this, work);
    split.take(*this);
  }

  void placeLane() {
    Value lane = frame.rem(thread, kWarp);
    cores.emplace(frame, lane);
    placeWarp();
    column = frame.mul(frame.rem(lane, 4), 2);
    firstOfLane = frame.add(firstRow, frame.div(lane, 4));
    ofLane = makeLane(layout, firstOfLane, Value(), partSize);
    ofLane.first = frame.add(firstSum, column);
    makeFactors();
  }

  void attendBlock(const TileWork &work) {
    placeLane();
    allocate();
    findTokens();
    if (!workspace)
      return endRows(attendTokens());
    split = TokenSplit::find(*this, work);
    frame.runIf(frame.below(split.number, split.count), [&] {
      split.take(*this);
      endPart(work, attendTokens());
    });
  }

  /// The sums of the block's tokens, with totals of whole rows.
  State attendTokens() {
    tiles = findTiles(getThreads());
    startCopies();
    // The copies take longer than the next unit.
    Value taken = schedule ? schedule->take() : Value();
    if (keys.hasGroupScales())
      frame.runIf(frame.below(frame.index(0), tiles),
                  [&] { loadGroupScales(frame.index(0))(); });
    loadQueries();
    if (schedule)
      schedule->store(taken, frame.toI32(getUse(tiles)));
    State state = addTokens();
    MutableArrayRef<Value> totals = getTotals(state);
    for (auto [r, total] : llvm::enumerate(totals)) {
      state[r] = getReference(state[r]);
      total = reduceOverLanes(total, /*isMax=*/false);
    }
    return state;
  }

  MutableArrayRef<Value> getTotals(State &state) {
    return MutableArrayRef(state).slice(layout.countRows(), layout.countRows());
  }
  MutableArrayRef<Value> getSums(State &state) {
    return MutableArrayRef(state).drop_front(2 * layout.countRows());
  }

  /// Of the lanes of a warp that share a row.
  Value reduceOverLanes(Value value, bool isMax) {
    return reduce(value, isMax, layout.countSharers(),
                  layout.getSharerStride());
  }

  void loadQueries() {
    queries.store(thread, getThreads(), [&](Value ofBlock) {
      auto [i, queryHead] = getRow(ofBlock);
      Value row = frame.add(rows.first, i);
      checkRow(row);
      return std::pair(row, queryHead);
    });
    gpu::BarrierOp::create(builder, loc);
    queries.keep(*cores, firstRow);
  }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  void allocate() {
    queries.allocate();
    for (TiledCache *side : getSides())
      side->allocate();
    if (ids)
      ids->allocate();
    if (list)
      list->allocate();
  }

  /// The number of a tile among all uses of a pipe, or one with the same slot
  /// and phase: with a schedule, other work of the block has used it before.
  Value getUse(Value tile) {
    return schedule ? frame.add(tile, firstUse) : tile;
  }

  void startCopies() {
    int64_t ahead = plan.countAhead();
    if (ids) {
      SmallVector<std::function<void()>> stores;
      for (int64_t i = 0; i <= ahead; ++i)
        stores.push_back(loadIds(frame.index(i)));
      for (const auto &store : stores)
        store();
      // Threads that convert elements meet once more before they do.
      if (hasCopies())
        gpu::BarrierOp::create(builder, loc);
    }
    for (int64_t i = 0; i < ahead; ++i)
      produce(frame.index(i),
              [i](const TiledCache &side) { return i < side.countAhead(); });
  }

  /// Copies a tile of those of keys and values that are wanted, if there is
  /// such a tile.
  void produce(Value tile, function_ref<bool(const TiledCache &)> isWanted) {
    SmallVector<TiledCache *> sides = getSides();
    llvm::erase_if(sides, [&](auto *side) { return !isWanted(*side); });
    if (sides.empty())
      return;
    frame.runIf(frame.below(tile, tiles), [&] {
      for (const TiledCache *side : sides)
        side->copy(getUse(tile), tile, getToken(tile), tokens);
    });
  }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  /// The scores of a tile, 4 for each 8 tokens.
  State computeScores(Value tile) {
    State scores(plan.tokens / 2, f.constant(0));
    for (int64_t d = 0; d < keySize; d += 16) {
      Fragment query = queries.get(*cores, firstRow, d);
      for (int64_t token = 0; token < plan.tokens; token += 16) {
        Fragment key =
            cores->load(tile, frame.index(token), frame.index(d), false);
        for (int64_t half = 0; half < 2; ++half)
          accumulate(scores, token / 2 + 4 * half, query, key[half],
                     key[half + 2], keys.getLane());
      }
    }
    return scores;
  }

  void accumulate(State &sums, int64_t position, const Fragment &a, Value b0,
                  Value b1, Type type) {
    Accumulator sum;
    std::copy_n(sums.begin() + position, 4, sum.begin());
    sum = cores->multiply(a, b0, b1, sum, type);
    std::copy_n(sum.begin(), 4, sums.begin() + position);
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  Value getReference(Value max) {
    float bias = getWeightBias();
    return bias != 0 ? f.sub(max, f.constant(bias)) : max;
  }

  State addTokens() {
    State none(layout.countRows(), f.constant(kLowest));
    none.append(layout.countRows() + layout.countElements(partSize),
                f.constant(0));
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), tiles, frame.index(1), none,
        [&](OpBuilder &, Location, Value tile, ValueRange state) {
          scf::YieldOp::create(builder, loc, addTile(tile, State(state)));
        });
    return State(loop.getResults());
  }

  bool isCopied() {
    return llvm::all_of(getSides(),
                        [](auto *side) { return side->isCopied(); });
  }

  /// Starts the next copies, where the tile in use leaves no more room: of
  /// tiles, or of raw ones.
  void produceNext(Value tile, bool isRaw) {
    for (int64_t ahead = 1; ahead <= plan.countAhead(); ++ahead)
      produce(frame.add(tile, frame.index(ahead)), [=](const TiledCache &side) {
        return side.isRaw() == isRaw && side.countAhead() == ahead;
      });
  }

  State addTile(Value tile, const State &state) {
    // All threads have used the tile before, and have stored the ids of the
    // next copies.
    if (ids || !isCopied())
      gpu::BarrierOp::create(builder, loc);
    // The only tile is copied when all have used the one before.
    produce(tile, [](const TiledCache &side) {
      return side.hasCopies() && side.countAhead() == 0;
    });
    produceNext(tile, /*isRaw=*/false);
    std::function<void()> storeIds = [] {};
    auto loadNextIds = [&] {
      if (ids)
        storeIds = loadIds(frame.add(tile, frame.index(plan.countAhead() + 1)));
    };
    // Ids that wait in registers while a tile is used leave products too few.
    if (plan.raw)
      loadNextIds();
    if (!isCopied()) {
      for (const TiledCache *side : getSides())
        side->fill(thread, getUse(tile), tile, getToken(tile), tokens);
      if (plan.raw)
        storeIds();
      gpu::BarrierOp::create(builder, loc);
      // Threads have converted the raw tile.
      produceNext(tile, /*isRaw=*/true);
    }
    if (keys.hasGroupScales()) {
      auto storeNext = loadGroupScales(frame.add(tile, frame.index(1)));
      State next = useTile(tile, state);
      storeNext();
      return next;
    }
    if (plan.raw)
      return useTile(tile, state);
    loadNextIds();
    State next = useTile(tile, state);
    storeIds();
    return next;
  }

  /// Loads the scales of groups of raw keys. After the last tile, they are
  /// those of its last token again.
  std::function<void()> loadGroupScales(Value tile) {
    return keys.loadGroupScales(thread, tile, getToken(tile), tokens);
  }

  SmallVector<Type> getTypes(int64_t count) {
    return SmallVector<Type>(count, builder.getF32Type());
  }

  State useTile(Value tile, State state) {
    if (!op.getValueCache())
      return keys.use(getUse(tile), getTypes(state.size()), [&](Value keyTile) {
        if (keys.isCopied())
          keys.clearUnseen(thread, keyTile, getToken(tile), tokens);
        State scores = computeScores(keyTile);
        auto weights = weigh(scores, tile, state);
        return addValues(keyTile, weights, state);
      });
    int64_t count = layout.countElements(plan.tokens);
    State scores = keys.use(getUse(tile), getTypes(count), [&](Value keyTile) {
      return computeScores(keyTile);
    });
    SmallVector<Fragment> weights = weigh(scores, tile, state);
    return values.use(
        getUse(tile), getTypes(state.size()), [&](Value valueTile) {
          if (values.isCopied())
            values.clearUnseen(thread, valueTile, getToken(tile), tokens);
          return addValues(valueTile, weights, state);
        });
  }

  SmallVector<int64_t> getScoresOf(int64_t row) {
    return layout.getElements(row, plan.tokens);
  }

  /// The maximum of a row over the lanes of a warp, with the scores of a tile.
  Value findMax(int64_t row, const State &scores, Value most) {
    SmallVector<int64_t> ofRow = getScoresOf(row);
    for (size_t i = 0; i < ofRow.size(); i += 2)
      most = f.max(most, f.max(scores[ofRow[i]], scores[ofRow[i + 1]]));
    return reduceOverLanes(most, /*isMax=*/true);
  }

  /// The weights of the scores of a tile, as left operands, or in shared memory
  /// as right ones. Updates maxima and totals, and scales the sums.
  SmallVector<Fragment> weigh(State &scores, Value tile, State &state) {
    if (keys.isUnscaled())
      keys.scale(scores, layout, column);
    for (auto [i, score] : llvm::enumerate(scores))
      score = applySoftCap(f.mul(score, factors[layout.getRowOf(i)]));
    scores = mask(modify(scores, tile), tile);
    for (int64_t r = 0; r < layout.countRows(); ++r) {
      Value most = findMax(r, scores, state[r]);
      Value shrink = f.exp2(f.sub(state[r], most));
      state[r] = most;
      Value reference = getReference(most);
      Value &ofRow = getTotals(state)[r];
      Value total = f.mul(ofRow, shrink);
      for (int64_t i : getScoresOf(r)) {
        scores[i] = f.exp2(f.sub(scores[i], reference));
        total = f.add(total, scores[i]);
      }
      ofRow = total;
      for (int64_t i : layout.getElements(r, partSize))
        getSums(state)[i] = f.mul(getSums(state)[i], shrink);
    }
    // Those of values that are keys are beside these.
    const TiledCache &ofValues = op.getValueCache() ? values : keys;
    if (ofValues.isUnscaled())
      ofValues.scale(scores, layout, column);
    SmallVector<Fragment> weights;
    for (int64_t i = 0; i < plan.tokens / 2; i += 8) {
      Fragment &fragment = weights.emplace_back();
      for (auto [p, pair] : llvm::enumerate(fragment))
        pair = cores->pack(scores[i + 2 * p], scores[i + 2 * p + 1],
                           values.getLane());
    }
    return weights;
  }

  State addValues(Value tile, ArrayRef<Fragment> weights, State state) {
    for (int64_t d = 0; d < partSize; d += 16)
      for (auto [t, weight] : llvm::enumerate(weights)) {
        Fragment value = cores->load(tile, frame.index(16 * t),
                                     frame.add(firstSum, frame.index(d)), true);
        for (int64_t half = 0; half < 2; ++half)
          accumulate(state, 4 + d / 2 + 4 * half, weight, value[2 * half],
                     value[2 * half + 1], values.getLane());
      }
    return state;
  }

  /// Elements of which a warp has the sums of its rows.
  int64_t partSize;
  TiledCache keys, values;
  QueryTile queries;
  std::optional<TensorCores> cores;
  /// The warp's first row in the block, and its first element of values.
  Value firstRow, firstSum;
  /// The uses of pipes before the first tile.
  Value firstUse;
};

} // namespace

void kvcache::expandForTensorCores(AttentionOp op, const Frame &frame,
                                   const TilePlan &plan) {
  TiledAttention attention(op, frame, plan);
  attention.expand();
  if (op.getWorkspace())
    expandMerge(op, frame, plan, attention.getWeightBias());
}
