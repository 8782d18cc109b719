//===- AttentionTiles.cpp - Expand kvcache.attention for tensor cores -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "QueryTile.h"
#include "TensorSums.h"
#include "TileRows.h"
#include "WarpgroupCores.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Weights of f16 are at most 2^15, so that small ones do not vanish.
constexpr float kHalfBias = 15;
/// Sums in tensor memory are scaled only where the maximum grows by a factor of
/// more than 2^8: weights are at most that large.
constexpr float kSlack = 8;

/// A block computes `tile_rows` query rows: some tokens of a sequence, for some
/// heads of a group each. Each warp takes 16 of these rows, or a part of their
/// values. Tiles of keys and values lie in shared memory, those of a latent
/// cache once for both, and all warps read each of them. Softmax is online, and
/// in base 2. A result does not depend on other sequences.
///
/// With sparse rows, a block has one token, and tiles are gathered by ids. What
/// is said of tokens is true of the columns of ids.
///
/// With a workspace, the tokens of sequences of few rows are split into parts.
/// The block that is the last to end a part of its rows merges all of them, in
/// their order.
///
/// Warps multiply fragments of tiles, or warpgroups multiply tiles: then each
/// has 64 rows, or a part of their values. Or one thread multiplies the tiles
/// of the block, and leaves scores and sums in tensor memory. What a lane has
/// of them is the same.
class TiledAttention : TileRows {
public:
  TiledAttention(AttentionOp op, const Frame &frame, const TilePlan &plan)
      : TileRows(op, frame, plan), byGroups(plan.unit == TileUnit::Warpgroups),
        inTensorMemory(plan.unit == TileUnit::TensorMemory), groups(frame),
        partSize(valueSize / plan.parts),
        keys(frame, op, op.getKeyCache(), keySize, plan),
        values(frame, op, op.getValues(), valueSize, plan),
        queries(frame, op.getQ(), keys.getLane(), plan.rows, keySize),
        sums(frame, plan.rows, plan.tokens, valueSize, values.getLane()) {}

  void expand() {
    forTiles(
        getThreads(), [&] { allocate(); },
        [&](const TileWork &work) { attendUnit(work); });
  }

private:
  using State = TileState;

  int64_t getThreads() const { return plan.countThreads(); }

  /// Finds the rows and the values of a warp. Warps of a group have other rows
  /// each, and the groups that share these follow one another.
  void placeWarp() {
    if (inTensorMemory) {
      firstRow =
          TensorSums::getFirstRow(frame, plan.rows, frame.div(thread, kWarp));
      firstSum = frame.index(0);
      return;
    }
    constexpr int64_t warpsOfGroup = WarpgroupCores::kThreads / kWarp;
    int64_t together = byGroups ? warpsOfGroup : 1;
    Value warp = frame.div(thread, kWarp);
    Value group = frame.div(warp, together);
    firstOfGroup =
        frame.mul(frame.div(group, plan.parts), together * kRowsOfWarp);
    firstRow = frame.add(firstOfGroup,
                         frame.mul(frame.rem(warp, together), kRowsOfWarp));
    firstSum = frame.mul(frame.rem(group, plan.parts), partSize);
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
    takePart(findPart(work));
  }

  void placeLane() {
    lane = frame.rem(thread, kWarp);
    cores.emplace(frame, lane);
    placeWarp();
    column = frame.mul(frame.rem(lane, 4), 2);
    Value factor = getFactor();
    Value ofWarp = frame.add(firstRow, frame.div(lane, 4));
    ofLane = {{makeRow(ofWarp, factor),
               makeRow(frame.add(ofWarp, frame.index(8)), factor)},
              frame.add(firstSum, column),
              partSize};
  }

  void attendBlock(const TileWork &work) {
    placeLane();
    allocate();
    findTokens();
    if (!workspace)
      return endColumns(attendTokens());
    Value size = findPart(work);
    frame.runIf(frame.below(part, parts), [&] {
      takePart(size);
      endPart(work, attendTokens());
    });
  }

  /// Finds the part of the tokens that the block has, and how many there are.
  /// Returns the tokens of a part.
  Value findPart(const TileWork &work) {
    Value zero = frame.index(0);
    Value count = countTokens(tokens.all);
    Value size = getPartSize(work.isWhole, count, plan.tokens);
    parts = getPartCount(count, size);
    part = arith::SelectOp::create(builder, loc, work.isWhole, zero, work.part);
    return size;
  }

  void takePart(Value size) {
    TokenRange &all = tokens.all;
    all.from = frame.add(all.from, frame.mul(part, size));
    all.to = frame.min(all.to, frame.add(all.from, size));
  }

  void endPart(const TileWork &work, const State &state) {
    Value one = frame.index(1), isAlone = frame.equal(parts, one);
    if (inTensorMemory) {
      frame.runIf(isAlone, [&] { endColumns(state); });
      return frame.runIf(frame.below(one, parts),
                         [&] { publishColumns(work.slot, state); });
    }
    TileParts merged = getParts(work.slot, ofLane);
    auto ended = runOrKeep(isAlone, state,
                           [&] { return merged.publish(part, parts, state); });
    frame.runIf(ended.first, [&] { endRows(ofLane, ended.second); });
  }

  TileParts getParts(Value slot, const TileLane &lane) {
    return TileParts(frame, *workspace, lane, thread, slot, first, firstHead,
                     counted);
  }

  /// The sums of the block's tokens, with totals of whole rows.
  State attendTokens() {
    tiles = frame.div(
        frame.add(countTokens(tokens.all), frame.index(plan.tokens - 1)),
        plan.tokens);
    startCopies();
    if (inTensorMemory && !schedule)
      sums.allocate(thread);
    // The copies take longer than the next unit.
    Value taken = schedule ? schedule->take() : Value();
    loadQueries();
    if (schedule)
      schedule->store(taken, frame.toI32(getUse(tiles)));
    State state = addTokens();
    for (int64_t r = 0; r < 2; ++r) {
      state[r] = getReference(state[r]);
      state[2 + r] = reduce(state[2 + r], /*isMax=*/false, 4, 1);
    }
    return state;
  }

  void loadQueries() {
    queries.store(thread, getThreads(), [&](Value ofBlock) {
      auto [i, queryHead] = getRow(ofBlock);
      Value row = frame.add(rows.first, i);
      checkRow(row);
      return std::pair(row, queryHead);
    });
    meet();
    if (!byGroups && !inTensorMemory)
      queries.keep(*cores, firstRow);
  }

  /// All threads meet, and have stored tiles.
  void meet() {
    if (byGroups || inTensorMemory)
      groups.emitFence();
    gpu::BarrierOp::create(builder, loc);
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
    if (workspace)
      counted = TileParts::allocate(frame);
    if (inTensorMemory && plan.blocks)
      sums.allocate(thread);
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
  State computeScores(Value tile, Value number) {
    if (inTensorMemory)
      return sums.multiplyRows(queries.getTile(), tile, [&] {
        for (bool isRaw : {false, true})
          if (copiesMeanwhile(isRaw))
            produceNext(number, isRaw);
      });
    if (byGroups)
      return groups.multiplyRows(queries.getTile(), firstOfGroup, tile);
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
    float bias = inTensorMemory ? kHalfBias - kSlack : kHalfBias;
    return values.getLane().isF16() ? f.sub(max, f.constant(bias)) : max;
  }

  State addTokens() {
    State none(2, f.constant(kLowest));
    none.append(2 + (inTensorMemory ? 0 : partSize / 2), f.constant(0));
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

  /// Whether the next copies are started while tensor cores compute scores.
  bool copiesMeanwhile(bool isRaw) {
    return inTensorMemory && (isRaw || isCopied());
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
    if (!copiesMeanwhile(/*isRaw=*/false))
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
      meet();
      // Threads have converted the raw tile.
      if (!copiesMeanwhile(/*isRaw=*/true))
        produceNext(tile, /*isRaw=*/true);
    }
    if (plan.raw)
      return useTile(tile, state);
    loadNextIds();
    State next = useTile(tile, state);
    storeIds();
    return next;
  }

  State useTile(Value tile, State state) {
    if (!op.getValueCache())
      return keys.use(getUse(tile), state.size(), [&](Value keyTile) {
        auto weights = weigh(computeScores(keyTile, tile), tile, state);
        return addValues(keyTile, tile, weights, state);
      });
    State scores = keys.use(getUse(tile), plan.tokens / 2, [&](Value keyTile) {
      return computeScores(keyTile, tile);
    });
    SmallVector<Fragment> weights = weigh(scores, tile, state);
    return values.use(getUse(tile), state.size(), [&](Value valueTile) {
      return addValues(valueTile, tile, weights, state);
    });
  }

  /// The weights of the scores of a tile, as left operands. Updates maxima and
  /// totals, and scales the sums.
  SmallVector<Fragment> weigh(State scores, Value tile, State &state) {
    if (keys.isUnscaled())
      keys.scale(scores, column);
    for (auto [i, score] : llvm::enumerate(scores))
      score = bend(f.mul(score, ofLane.rows[i / 2 % 2].factor));
    scores = mask(scores, tile);
    SmallVector<Value, 2> shrinks;
    Value isGrown;
    for (int64_t r = 0; r < 2; ++r) {
      Value most = state[r];
      for (int64_t i = 2 * r; i < plan.tokens / 2; i += 4)
        most = f.max(most, f.max(scores[i], scores[i + 1]));
      most = reduce(most, /*isMax=*/true, 4, 1);
      if (inTensorMemory) {
        Value grows =
            arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                                  f.sub(most, state[r]), f.constant(kSlack));
        most = f.select(grows, most, state[r]);
        isGrown =
            r == 0 ? grows : arith::OrIOp::create(builder, loc, isGrown, grows);
      }
      Value shrink = shrinks.emplace_back(f.exp2(f.sub(state[r], most)));
      state[r] = most;
      Value reference = getReference(most);
      Value total = f.mul(state[2 + r], shrink);
      for (int64_t i = 2 * r; i < plan.tokens / 2; i += 4)
        for (int64_t e = 0; e < 2; ++e) {
          scores[i + e] = f.exp2(f.sub(scores[i + e], reference));
          total = f.add(total, scores[i + e]);
        }
      state[2 + r] = total;
      for (size_t i = 4 + 2 * r; i < state.size(); i += 4)
        for (int64_t e = 0; e < 2; ++e)
          state[i + e] = f.mul(state[i + e], shrink);
    }
    if (inTensorMemory)
      sums.scale(shrinks,
                 arith::AndIOp::create(builder, loc, isGrown, hasSums(tile)));
    // Those of values that are keys are beside these.
    const TiledCache &ofValues = op.getValueCache() ? values : keys;
    if (ofValues.isUnscaled())
      ofValues.scale(scores, column);
    SmallVector<Fragment> weights;
    for (int64_t i = 0; i < plan.tokens / 2; i += 8) {
      Fragment &fragment = weights.emplace_back();
      for (auto [p, pair] : llvm::enumerate(fragment))
        pair = cores->pack(scores[i + 2 * p], scores[i + 2 * p + 1],
                           values.getLane());
    }
    return weights;
  }

  /// Whether tiles before this one have sums.
  Value hasSums(Value tile) { return frame.below(frame.index(0), tile); }

  State addValues(Value tile, Value number, ArrayRef<Fragment> weights,
                  State state) {
    if (inTensorMemory) {
      sums.addColumns(weights, tile, hasSums(number));
      return state;
    }
    if (byGroups) {
      SmallVector<Value> added = groups.addColumns(
          weights, tile, firstSum, ArrayRef(state).drop_front(4));
      llvm::copy(added, state.begin() + 4);
      return state;
    }
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

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  /// Runs `body` with a lane of some of the elements, and its sums behind the
  /// state of its rows.
  void forColumns(
      const State &state,
      function_ref<void(const TileLane &lane, const State &state)> body) {
    sums.forColumns(hasSums(tiles), [&](Value first, ValueRange columns) {
      State all(state);
      llvm::append_range(all, columns);
      body(getLane(first), all);
    });
  }

  TileLane getLane(Value firstColumn) {
    return {ofLane.rows, frame.add(firstColumn, column), sums.getColumns()};
  }

  void endColumns(const State &state) {
    if (!inTensorMemory)
      return endRows(ofLane, state);
    forColumns(state, [&](const TileLane &lane, const State &all) {
      endRows(lane, all);
    });
  }

  /// Stores a part, and if it is the last one merges all of them.
  void publishColumns(Value slot, const State &state) {
    forColumns(state, [&](const TileLane &lane, const State &all) {
      getParts(slot, lane).store(part, all);
    });
    TileParts merged = getParts(slot, ofLane);
    frame.runIf(merged.isLast(parts), [&] {
      State maxima = merged.findMaxima(parts);
      auto forLanes = [&](function_ref<void(const TileLane &)> body) {
        frame.loop(frame.index(0), frame.index(valueSize),
                   frame.index(sums.getColumns()),
                   [&](Value first) { body(getLane(first)); });
      };
      forLanes([&](const TileLane &lane) {
        endRows(lane, getParts(slot, lane).merge(parts, maxima));
      });
      gpu::BarrierOp::create(builder, loc);
      forLanes(
          [&](const TileLane &lane) { getParts(slot, lane).clear(parts); });
      merged.clearCounter();
    });
  }

  /// Ends the rows of a lane, and stores its elements.
  void endRows(const TileLane &lane, const State &state) {
    for (auto [r, row] : llvm::enumerate(lane.rows)) {
      frame.runIf(row.isReal, [&, r = r, &row = row] {
        RowSum sum =
            addSink({state[r], state[2 + r], f.constant(1)}, row.queryHead);
        Value quotient = getQuotient(sum, row.queryHead);
        forPairs(frame, lane, r, [&](Value d, int64_t i) {
          Value pair = vector::FromElementsOp::create(
              builder, loc, f.vectorOf(2),
              ValueRange{f.mul(state[i], quotient),
                         f.mul(state[i + 1], quotient)});
          storeDense(frame, pair, op.getOut(), {row.row, row.queryHead}, d);
        });
        frame.runIf(frame.equal(lane.first, frame.index(0)),
                    [&] { storeLogarithm(sum, row.row, row.queryHead); });
      });
    }
  }

  /// Whether warpgroups multiply tiles, or whether one thread does, into tensor
  /// memory.
  bool byGroups, inTensorMemory;
  WarpgroupCores groups;
  /// Elements of which a warp or warpgroup has the sums of its rows.
  int64_t partSize;
  TiledCache keys, values;
  QueryTile queries;
  TensorSums sums;
  std::optional<TensorCores> cores;
  Value lane;
  /// The first row in the block of the warp and of its group, and their first
  /// element of values.
  Value firstRow, firstOfGroup, firstSum;
  /// A place for the number of parts that are stored.
  Value counted;
  /// The block's part of the tokens, and the number of parts.
  Value part, parts;
  /// The number of tiles, and the uses of pipes before the first.
  Value tiles, firstUse;
};

} // namespace

void kvcache::expandForTensorCores(AttentionOp op, const Frame &frame,
                                   const TilePlan &plan) {
  TiledAttention(op, frame, plan).expand();
}
