//===- AttentionTiles.cpp - Expand kvcache.attention for tensor cores -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "QueryTile.h"
#include "TileGrid.h"
#include "TileParts.h"
#include "TiledCache.h"
#include "WarpgroupCores.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Query rows of a warp: those of a product.
constexpr int64_t kRowsOfWarp = 16;
/// Weights of f16 are at most 2^15, so that small ones do not vanish.
constexpr float kHalfBias = 15;

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
/// has 64 rows, or a part of their values. What a lane has is the same.
class TiledAttention : TileGrid {
public:
  TiledAttention(AttentionOp op, const Frame &frame, const TilePlan &given)
      : TileGrid(op, frame, given.rows), plan(given),
        byGroups(plan.unit == TileUnit::Warpgroups), groups(frame),
        partSize(valueSize / plan.parts),
        keys(makeTiles(op.getKeyCache(), keySize,
                       /*isWeighed=*/!op.getValueCache())),
        values(makeTiles(op.getValues(), valueSize, /*isWeighed=*/true)),
        queries(frame, op.getQ(), keys.getLane(), plan.rows, keySize) {
    // Those of the tile in use, of those that copies are for, and of the next.
    if (op.getRows())
      ids.emplace(frame, op, plan.tokens, plan.stages + 1, getThreads());
  }

  void expand() {
    forTiles(getThreads(), [&](const TileWork &work) { attendUnit(work); });
  }

private:
  using State = TileState;

  int64_t getThreads() const {
    return plan.rows / kRowsOfWarp * plan.parts * kWarp;
  }

  /// Finds the rows and the values of a warp. Warps of a group have other rows
  /// each, and the groups that share these follow one another.
  void placeWarp() {
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

  TiledCache makeTiles(Value cache, int64_t size, bool isWeighed) {
    FloatType lane = op.getTileElement(cache);
    // Scales may make weights of f16 infinite.
    bool unscaled = hasTokenScales(cast<CacheTypeInterface>(cache.getType())) &&
                    !(isWeighed && lane.isF16());
    return TiledCache(frame, cache, lane, size, plan.tokens, plan.stages,
                      getThreads(), unscaled);
  }

  /// The caches that have tiles: latent rows are keys and values.
  SmallVector<TiledCache *> getSides() {
    return op.getValueCache() ? SmallVector<TiledCache *>{&keys, &values}
                              : SmallVector<TiledCache *>{&keys};
  }

  bool hasCopies() {
    return llvm::any_of(getSides(),
                        [](auto *side) { return side->isCopied(); });
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  void attendUnit(const TileWork &work) {
    first = frame.mul(work.number, perBlock);
    rows = getRows(work.sequence);
    Value isOurs = frame.below(first, rows.count);
    if (workspace)
      isOurs = arith::AndIOp::create(builder, loc, isOurs,
                                     hasRows(work.isWhole, rows.count));
    frame.runIf(isOurs, [&] {
      if (op.getRows()) {
        rows = getSparseRow(frame.add(rows.first, first));
        first = frame.index(0);
      } else {
        rows = getRowsOfSequence(work.sequence);
      }
      count = frame.min(frame.sub(rows.count, first), frame.index(perBlock));
      attendBlock(work);
    });
  }

  /// The token and the query head of a row of the block. Those behind the last
  /// repeat its token.
  std::pair<Value, Value> getRow(Value ofBlock) {
    Value last = frame.sub(count, frame.index(1));
    Value i = frame.add(first, frame.min(frame.div(ofBlock, packed), last));
    return {i, frame.add(firstHead, frame.rem(ofBlock, packed))};
  }

  TileRow makeRow(Value ofBlock, Value factor) {
    TileRow row;
    std::tie(row.i, row.queryHead) = getRow(ofBlock);
    row.row = frame.add(rows.first, row.i);
    row.isReal = frame.below(ofBlock, frame.mul(count, packed));
    row.seen = getSeen(rows, row.i);
    row.factor = getFactor(factor, row.queryHead);
    return row;
  }

  void attendBlock(const TileWork &work) {
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
    allocate();
    findTokens();
    if (!workspace)
      return endRows(attendTokens());
    Value zero = frame.index(0), one = frame.index(1);
    Value count = countTokens();
    Value size = getPartSize(work.isWhole, count, plan.tokens);
    Value parts = getPartCount(count, size);
    Value part =
        arith::SelectOp::create(builder, loc, work.isWhole, zero, work.part);
    frame.runIf(frame.below(part, parts), [&] {
      TokenRange &all = tokens.all;
      all.from = frame.add(all.from, frame.mul(part, size));
      all.to = frame.min(all.to, frame.add(all.from, size));
      State sums = attendTokens();
      TileParts merged(frame, *workspace, ofLane, thread, work.slot, first,
                       firstHead, counted);
      auto ended = runOrKeep(frame.equal(parts, one), sums,
                             [&] { return merged.publish(part, parts, sums); });
      frame.runIf(ended.first, [&] { endRows(ended.second); });
    });
  }

  /// The sums of the block's tokens, with totals of whole rows.
  State attendTokens() {
    tiles = frame.div(frame.add(countTokens(), frame.index(plan.tokens - 1)),
                      plan.tokens);
    startCopies();
    loadQueries();
    State sums = addTokens();
    for (int64_t r = 0; r < 2; ++r) {
      sums[r] = getReference(sums[r]);
      sums[2 + r] = reduce(sums[2 + r], /*isMax=*/false, 4, 1);
    }
    return sums;
  }

  void loadQueries() {
    queries.store(thread, getThreads(), [&](Value ofBlock) {
      auto [i, queryHead] = getRow(ofBlock);
      Value row = frame.add(rows.first, i);
      checkRow(row);
      return std::pair(row, queryHead);
    });
    meet();
    if (!byGroups)
      queries.keep(*cores, firstRow);
  }

  /// All threads meet, and have stored tiles.
  void meet() {
    if (byGroups)
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
  }

  /// Finds the tiles of tokens that rows of the block see.
  void findTokens() {
    Value last = frame.sub(frame.add(first, count), frame.index(1));
    TokenRange ofFirst = getSeen(rows, first), ofLast = getSeen(rows, last);
    TokenRange all{ofFirst.from, ofLast.to};
    seenByAll = {ofLast.from, ofFirst.to};
    int64_t alignment = plan.tokens;
    if (op.getWindow() || op.getChunk()) {
      // A tile may begin in front of what rows see, but not in another page.
      int64_t pageSize =
          cast<CacheTypeInterface>(op.getKeyCache().getType()).getPageSize();
      int64_t ofValues =
          cast<CacheTypeInterface>(op.getValues().getType()).getPageSize();
      bool isKnown =
          !ShapedType::isDynamic(pageSize) && !ShapedType::isDynamic(ofValues);
      alignment =
          isKnown ? std::gcd(std::gcd(plan.tokens, pageSize), ofValues) : 1;
      all.from = frame.sub(all.from, frame.rem(all.from, alignment));
    }
    tokens = {rows.batch, head, all, alignment, ids ? &*ids : nullptr};
  }

  Value countTokens() {
    return frame.max(frame.sub(tokens.all.to, tokens.all.from), frame.index(0));
  }

  Value getToken(Value tile) {
    return frame.add(tokens.all.from, frame.mul(tile, plan.tokens));
  }

  std::function<void()> loadIds(Value tile) {
    return ids->load(thread, rows.first, tile, tokens.all);
  }

  void startCopies() {
    if (ids) {
      SmallVector<std::function<void()>> stores;
      for (int64_t i = 0; i < plan.stages; ++i)
        stores.push_back(loadIds(frame.index(i)));
      for (const auto &store : stores)
        store();
      gpu::BarrierOp::create(builder, loc);
    }
    for (int64_t i = 0; i + 1 < plan.stages; ++i)
      produce(frame.index(i));
  }

  /// Copies a tile of keys and one of values, if there is such a tile.
  void produce(Value tile) {
    if (!hasCopies())
      return;
    frame.runIf(frame.below(tile, tiles), [&] {
      for (const TiledCache *side : getSides())
        side->copy(tile, getToken(tile), tokens);
    });
  }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  /// The scores of a tile, 4 for each 8 tokens.
  State computeScores(Value tile) {
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

  /// Gives the scores of ids that are no row's the weight 0.
  State maskIds(State scores, Value tile) {
    Value none = f.constant(-std::numeric_limits<float>::infinity());
    for (int64_t t = 0; t < plan.tokens / 8; ++t) {
      Value pair = ids->get(tile, frame.add(column, frame.index(8 * t)), 2);
      for (int64_t e = 0; e < 2; ++e) {
        Value isSeen =
            ids->isRow(vector::ExtractOp::create(builder, loc, pair, e));
        for (int64_t r = 0; r < 2; ++r) {
          Value &score = scores[4 * t + 2 * r + e];
          score = f.select(isSeen, score, none);
        }
      }
    }
    return scores;
  }

  /// Gives scores that rows do not see the weight 0, where there are any.
  State mask(const State &scores, Value tile) {
    if (ids)
      return maskIds(scores, tile);
    Value token = getToken(tile);
    Value end = frame.add(token, frame.index(plan.tokens));
    Value isPart = frame.less(seenByAll.to, end);
    auto orIf = [&](Value condition) {
      isPart = arith::OrIOp::create(builder, loc, isPart, condition);
    };
    if (hasBegin())
      orIf(frame.less(token, seenByAll.from));
    if (op.getMask())
      orIf(frame.less(rows.own, end));
    auto branch = scf::IfOp::create(
        builder, loc, isPart,
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, loc, maskEach(scores, token));
        },
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, loc, scores);
        });
    return State(branch.getResults());
  }

  bool hasBegin() { return op.getWindow() || op.getChunk(); }

  State maskEach(const State &scores, Value token) {
    // Bounds relative to the first column of the lane, from 0 on.
    auto getBound = [&](Value bound) {
      bound = frame.sub(bound, frame.add(token, column));
      Value least = frame.index(-plan.tokens);
      return frame.toI32(
          frame.max(frame.min(bound, frame.index(plan.tokens)), least));
    };
    Value none = f.constant(-std::numeric_limits<float>::infinity());
    State masked(scores);
    for (auto [r, row] : llvm::enumerate(ofLane.rows)) {
      Value to = getBound(row.seen.to);
      Value from = hasBegin() ? getBound(row.seen.from) : Value();
      for (int64_t t = 0; t < plan.tokens / 8; ++t)
        for (int64_t e = 0; e < 2; ++e) {
          Value number = frame.i32(8 * t + e);
          Value isSeen = frame.less(number, to);
          auto andIf = [&](Value condition) {
            isSeen = arith::AndIOp::create(builder, loc, isSeen, condition);
          };
          if (from)
            andIf(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                        number, from));
          if (op.getMask())
            andIf(isUnmasked(
                rows, row.i,
                frame.add(frame.add(token, column), frame.index(8 * t + e))));
          Value &score = masked[4 * t + 2 * r + e];
          score = f.select(isSeen, score, none);
        }
    }
    return masked;
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  Value getReference(Value max) {
    return values.getLane().isF16() ? f.sub(max, f.constant(kHalfBias)) : max;
  }

  State addTokens() {
    State none(2, f.constant(kLowest));
    none.append(2 + partSize / 2, f.constant(0));
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(0), tiles, frame.index(1), none,
        [&](OpBuilder &, Location, Value tile, ValueRange state) {
          scf::YieldOp::create(builder, loc, addTile(tile, State(state)));
        });
    return State(loop.getResults());
  }

  State addTile(Value tile, const State &state) {
    SmallVector<TiledCache *> sides = getSides();
    bool isCopied =
        llvm::all_of(sides, [](auto *side) { return side->isCopied(); });
    // All threads have used the tile before, and have stored the ids of the
    // next copies.
    if (ids || !isCopied)
      gpu::BarrierOp::create(builder, loc);
    produce(frame.add(tile, frame.index(plan.stages - 1)));
    if (!isCopied) {
      for (const TiledCache *side : sides)
        side->fill(thread, tile, getToken(tile), tokens);
      meet();
    }
    std::function<void()> storeIds = [] {};
    if (ids)
      storeIds = loadIds(frame.add(tile, frame.index(plan.stages)));
    State next = useTile(tile, state);
    storeIds();
    return next;
  }

  State useTile(Value tile, State state) {
    if (!op.getValueCache())
      return keys.use(tile, state.size(), [&](Value keyTile) {
        auto weights = weigh(computeScores(keyTile), tile, state);
        return addValues(keyTile, weights, state);
      });
    State scores = keys.use(tile, plan.tokens / 2, [&](Value keyTile) {
      return computeScores(keyTile);
    });
    SmallVector<Fragment> weights = weigh(scores, tile, state);
    return values.use(tile, state.size(), [&](Value valueTile) {
      return addValues(valueTile, weights, state);
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
    for (int64_t r = 0; r < 2; ++r) {
      Value most = state[r];
      for (int64_t i = 2 * r; i < plan.tokens / 2; i += 4)
        most = f.max(most, f.max(scores[i], scores[i + 1]));
      most = reduce(most, /*isMax=*/true, 4, 1);
      Value shrink = f.exp2(f.sub(state[r], most));
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

  State addValues(Value tile, ArrayRef<Fragment> weights, State state) {
    if (byGroups) {
      SmallVector<Value> sums = groups.addColumns(
          weights, tile, firstSum, ArrayRef(state).drop_front(4));
      llvm::copy(sums, state.begin() + 4);
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

  void endRows(const State &state) {
    for (auto [r, row] : llvm::enumerate(ofLane.rows)) {
      frame.runIf(row.isReal, [&, r = r, &row = row] {
        RowSum sum =
            addSink({state[r], state[2 + r], f.constant(1)}, row.queryHead);
        Value quotient = getQuotient(sum, row.queryHead);
        forPairs(frame, ofLane, r, [&](Value d, int64_t i) {
          Value pair = vector::FromElementsOp::create(
              builder, loc, f.vectorOf(2),
              ValueRange{f.mul(state[i], quotient),
                         f.mul(state[i + 1], quotient)});
          storeDense(frame, pair, op.getOut(), {row.row, row.queryHead}, d);
        });
        frame.runIf(frame.equal(ofLane.first, frame.index(0)),
                    [&] { storeLogarithm(sum, row.row, row.queryHead); });
      });
    }
  }

  TilePlan plan;
  /// Whether warpgroups multiply tiles.
  bool byGroups;
  WarpgroupCores groups;
  /// Elements of which a warp or warpgroup has the sums of its rows.
  int64_t partSize;
  TiledCache keys, values;
  QueryTile queries;
  /// Given with sparse rows.
  std::optional<TileIds> ids;
  std::optional<TensorCores> cores;
  Value lane;
  /// The sequence, and the block's first row and number of rows in it.
  QueryRows rows;
  Value first, count;
  /// The first row in the block of the warp and of its group, and their first
  /// element of values; the lane's first column.
  Value firstRow, firstOfGroup, firstSum, column;
  TileLane ofLane;
  /// A place for the number of parts that are stored.
  Value counted;
  /// Tokens of tiles, those that all rows see, and the number of tiles.
  TiledTokens tokens;
  TokenRange seenByAll;
  Value tiles;
};

} // namespace

void kvcache::expandForTensorCores(AttentionOp op, const Frame &frame,
                                   const TilePlan &plan) {
  TiledAttention(op, frame, plan).expand();
}
