//===- AttentionGPU.cpp - Expand kvcache.attention for GPUs ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreRegions.h"
#include "SeenRanges.h"
#include "kvcache/Support/CachePolicy.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The work of a warp: a row, or a part of the tokens that it sees.
struct Work {
  /// Whether the row is not split. Otherwise it has a slot in the workspace.
  Value isWhole;
  Value batch, row, slot, part;
};

/// A warp computes a row for some query heads of a group. Lanes share the
/// elements of a token, and the warp computes several tokens at once, without
/// shared memory. Softmax is online, and in base 2. A result does not depend on
/// other rows.
///
/// With a workspace, rows are split into parts, which another launch merges.
class GPUAttention : AttentionBase {
public:
  GPUAttention(AttentionOp op, const Frame &frame, const WarpPlan &plan)
      : AttentionBase(op, frame), ranges(this->frame, op), plan(plan),
        keyPieces(keySize / (plan.lanes * plan.keyWidth)),
        valuePieces(valueSize / (plan.lanes * plan.valueWidth)) {}

  void expand() {
    int64_t shares = group / plan.rows;
    // Blocks beside each other read the same tokens.
    int64_t across = heads * shares;
    Value units = frame.dim(op.getQ(), 0), layers = frame.index(1);
    if (op.getWorkspace()) {
      makeWorkspace();
      Value parts = frame.mul(slots, countPartsOfLayer());
      // Blocks read the offsets of a sequence before they know that it is
      // theirs.
      Value any = frame.min(slots, frame.index(1));
      units = frame.mul(frame.max(units, parts), any);
      layers = frame.index(1 + countLayersOfParts());
    }
    frame.forBlocks(
        {frame.mul(units, across), layers}, {1, 1},
        [&](ValueRange block) {
          frame.forThreads({kWarp}, [&](ValueRange ids) {
            thread = ids[0];
            lane = frame.rem(thread, plan.lanes);
            warp = frame.div(thread, plan.lanes);
            Value share = frame.rem(block[0], across);
            head = frame.div(share, shares);
            firstHead =
                frame.add(frame.mul(head, group),
                          frame.mul(frame.rem(share, shares), plan.rows));
            Value unit = frame.div(block[0], across);
            if (workspace)
              attendUnit(unit, block[1]);
            else
              attendRow(unit);
          });
        },
        /*alongX=*/0);
  }

private:
  /// Sums of the lane: for each query head the maximum, the total, and pieces.
  using Sums = SmallVector<Value>;

  //===--------------------------------------------------------------------===//
  // Rows and parts
  //===--------------------------------------------------------------------===//

  void attendRow(Value number) {
    row = number;
    frame.runIf(frame.below(row, frame.countRows(op.getRowOffsets())), [&] {
      Value i = frame.index(0);
      if (op.getRows()) {
        rows = getSparseRow(row);
      } else {
        rows = getRowsOfSequence(frame.findSequence(op.getRowOffsets(), row));
        i = frame.sub(row, rows.first);
      }
      loadQueries();
      endRows(
          addRange(restrictTokens(frame, op, rows, i, i, getSeen(rows, i)), i));
    });
  }

  /// The first layer of the grid has whole rows, which take longest, and the
  /// next ones have parts.
  Work getWork(Value unit, Value layer) {
    int64_t parts = countPartsOfLayer();
    Value isWhole = frame.equal(layer, frame.index(0));
    layer = frame.sub(layer, frame.index(1));
    Value slot = frame.div(unit, parts);
    Value part = frame.add(frame.mul(layer, parts), frame.rem(unit, parts));
    // Branches on what was loaded lie inside of those on the block's number, so
    // that ptxas keeps what all threads of a block share in uniform registers.
    auto findWhole = [&]() -> Pair {
      // The first sequence has no row of padding.
      Value batch = frame.selectIf(
          frame.below(unit, frame.countRows(op.getRowOffsets())),
          [&] { return frame.findSequence(op.getRowOffsets(), unit); },
          [&] { return frame.index(0); });
      return {batch, unit};
    };
    auto findSplit = [&]() -> Pair {
      // Slots after the last have rows after those that are split.
      Value last = frame.sub(frame.dim(op.getRowOffsets(), 0), frame.index(2));
      Value batch = frame.div(slot, op.getSplitOrDefault().getRows());
      batch = frame.min(batch, last);
      Value i =
          frame.sub(slot, frame.mul(batch, op.getSplitOrDefault().getRows()));
      Value first = frame.loadNumber(op.getRowOffsets(), batch);
      return {batch, frame.add(first, i)};
    };
    auto [batch, row] = selectPair(isWhole, findWhole, findSplit);
    return {isWhole, batch, row, slot, part};
  }

  void attendUnit(Value unit, Value layer) {
    Work work = getWork(unit, layer);
    row = work.row;
    rows = getRows(work.batch);
    Value i = frame.sub(row, rows.first);
    Value isOurs =
        arith::AndIOp::create(builder, loc, frame.below(i, rows.count),
                              hasRows(work.isWhole, rows.count));
    frame.runIf(isOurs, [&] {
      if (op.getRows()) {
        rows = getSparseRow(row);
        i = frame.index(0);
      } else {
        rows = getRowsOfSequence(work.batch);
      }
      attendPart(work, i);
    });
  }

  void attendPart(const Work &work, Value i) {
    TokenRange seen = restrictTokens(frame, op, rows, i, i, getSeen(rows, i));
    Value zero = frame.index(0), one = frame.index(1);
    Value count = frame.max(frame.sub(seen.to, seen.from), zero);
    Value size = getPartSize(work.isWhole, count, /*multiple=*/1);
    Value parts = getPartCount(count, size);
    Value part =
        arith::SelectOp::create(builder, loc, work.isWhole, zero, work.part);
    frame.runIf(frame.below(part, parts), [&] {
      Value from = frame.add(seen.from, frame.mul(part, size));
      Value to = frame.min(seen.to, frame.add(from, size));
      loadQueries();
      Sums sums = addRange({from, to}, i);
      frame.runIf(frame.equal(parts, one), [&] { endRows(sums); });
      frame.runIf(frame.below(one, parts),
                  [&] { storePart(work.slot, work.part, sums); });
    });
  }

  //===--------------------------------------------------------------------===//
  // Parts in the workspace
  //===--------------------------------------------------------------------===//

  void storePart(Value slot, Value part, const Sums &sums) {
    Value number = workspace->getPart(slot, part);
    Value isFirst = frame.equal(warp, frame.index(0));
    for (int64_t g = 0; g < plan.rows; ++g) {
      auto [sum, values] = reduceRow(sums, g);
      Value queryHead = getQueryHead(g);
      frame.runIf(isFirst, [&, sum = sum, &values = values] {
        for (auto [p, value] : llvm::enumerate(values))
          workspace->storeSums(value, number, queryHead,
                               getElement(p, plan.valueWidth));
        frame.runIf(frame.equal(lane, frame.index(0)), [&] {
          workspace->storeState(sum.max, sum.total, number, queryHead);
        });
      });
    }
  }

  //===--------------------------------------------------------------------===//
  // Elements
  //===--------------------------------------------------------------------===//

  Value getQueryHead(int64_t g) { return frame.add(firstHead, frame.index(g)); }

  MutableArrayRef<Value> getPieces(Sums &sums, int64_t g) {
    return MutableArrayRef(sums).slice(2 * plan.rows + g * valuePieces,
                                       valuePieces);
  }

  Value getElement(int64_t piece, int64_t width) {
    Value first = frame.mul(lane, width);
    return frame.add(first, frame.index(piece * plan.lanes * width));
  }

  void loadQueries() {
    checkRow(row);
    Value factor = getFactor();
    queries.clear();
    for (int64_t g = 0; g < plan.rows; ++g) {
      Value queryHead = getQueryHead(g);
      Value factors = f.splat(getFactor(factor, queryHead), plan.keyWidth);
      for (int64_t p = 0; p < keyPieces; ++p) {
        Value q = loadJoined(frame, getQueries(), {row, queryHead},
                             getElement(p, plan.keyWidth), plan.keyWidth);
        queries.push_back(
            f.mul(convertLanes(frame, q, builder.getF32Type()), factors));
      }
    }
  }

  Sums getNoSums() {
    Sums sums(plan.rows, f.constant(kLowest));
    sums.append(plan.rows, f.constant(0));
    sums.append(plan.rows * valuePieces,
                f.constant(f.vectorOf(plan.valueWidth), 0));
    return sums;
  }

  //===--------------------------------------------------------------------===//
  // Tokens
  //===--------------------------------------------------------------------===//

  /// A token of the lane, its number, its pieces, whether the row sees it by
  /// position, and the scales of the token, or null.
  struct Token {
    Value number, isSeen, keyScale, valueScale;
    SmallVector<Value> key, value;
  };

  Token loadToken(Value number, Value i, Value end) {
    Token token;
    token.isSeen = frame.less(number, end);
    // After the last token, the last is read again.
    number = frame.min(number, frame.sub(end, frame.index(1)));
    token.number = number;
    Value id;
    auto restrict = [&](Value condition) {
      token.isSeen =
          arith::AndIOp::create(builder, loc, token.isSeen, condition);
    };
    if (op.getRows()) {
      Value given = loadId(rows, number);
      id = frame.max(given, frame.index(0));
      restrict(frame.equal(given, id));
    }
    if (op.getMask())
      restrict(isUnmasked(rows, i, number));
    if (ranges.hasGaps())
      restrict(isAnyInRanges(i, number, 1));
    Place place = getPlace(rows, number, id);
    auto load = [&](Value cache, int64_t pieces, int64_t width, Value &scale) {
      SmallVector<Value> values;
      for (int64_t p = 0; p < pieces; ++p)
        values.push_back(loadPiece(cache, place, p, width));
      if (scalesScores(cache))
        scale = loadTokenScale(frame, cache, place, head);
      return values;
    };
    token.key =
        load(op.getKeyCache(), keyPieces, plan.keyWidth, token.keyScale);
    if (op.getValueCache()) {
      token.value = load(op.getValueCache(), valuePieces, plan.valueWidth,
                         token.valueScale);
    } else {
      token.value.append(token.key.begin(), token.key.begin() + valuePieces);
      token.valueScale = token.keyScale;
    }
    return token;
  }

  /// A piece of a key or a value as f32. Keys may end with those of a rope.
  Value loadPiece(Value cache, const Place &place, int64_t piece,
                  int64_t width) {
    Value d = getElement(piece, width);
    auto load = [&](Value from, Value element) {
      return loadRow(from, place, element, width, builder.getF32Type(),
                     isStreamed(plan.hint));
    };
    int64_t first = piece * plan.lanes * width;
    if (!op.getRopeCache() || first + plan.lanes * width <= contentSize)
      return load(cache, d);
    Value border = frame.index(contentSize);
    auto loadRope = [&] {
      return load(op.getRopeCache(), frame.sub(d, border));
    };
    if (first >= contentSize)
      return loadRope();
    return frame.selectIf(
        frame.below(d, border), [&] { return load(cache, d); }, loadRope);
  }

  Value reduceElements(Value vector, int64_t size, int64_t stride) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < plan.valueWidth; ++i)
      elements.push_back(
          reduce(vector::ExtractOp::create(builder, loc, vector, i),
                 /*isMax=*/false, size, stride));
    return vector::FromElementsOp::create(
        builder, loc, f.vectorOf(plan.valueWidth), elements);
  }

  Value computeScore(const Token &token, int64_t g) {
    Value products;
    for (int64_t p = 0; p < keyPieces; ++p) {
      Value q = queries[g * keyPieces + p];
      products =
          products ? f.fma(q, token.key[p], products) : f.mul(q, token.key[p]);
    }
    Value sum = reduce(f.sumOf(products), /*isMax=*/false, plan.lanes, 1);
    if (token.keyScale)
      sum = f.mul(sum, token.keyScale);
    return applySoftCap(sum);
  }

  /// The sums of a range of tokens; all lanes have the same maxima.
  Sums addRange(const TokenRange &range, Value i) {
    int64_t step = plan.tokens * (kWarp / plan.lanes);
    auto loop = scf::ForOp::create(
        builder, loc, range.from, range.to, frame.index(step), getNoSums(),
        [&](OpBuilder &, Location, Value first, ValueRange sums) {
          auto add = [&] {
            Sums next = addTokens(frame.add(first, warp), i, range.to, sums);
            scf::YieldOp::create(builder, loc, next);
          };
          Value isAny = isAnySeen(i, first, step);
          if (!isAny)
            return add();
          auto branch = scf::IfOp::create(
              builder, loc, isAny, [&](OpBuilder &, Location) { add(); },
              [&](OpBuilder &, Location) {
                scf::YieldOp::create(builder, loc, sums);
              });
          scf::YieldOp::create(builder, loc, branch.getResults());
        });
    return Sums(loop.getResults());
  }

  /// Whether a row may see one of some tokens, by its ranges and the region
  /// `mask`: the same in all lanes. Null without them.
  Value isAnySeen(Value i, Value first, int64_t count) {
    Value isAny;
    if (Region *mask = op.getMaskRegion())
      isAny = isAnyAdmitted(*mask, i, first, count);
    if (!ranges.hasGaps())
      return isAny;
    Value isInRange = isAnyInRanges(i, first, count);
    return isAny ? Value(arith::AndIOp::create(builder, loc, isAny, isInRange))
                 : isInRange;
  }

  Value isAnyInRanges(Value i, Value first, int64_t count) {
    TokenRange tokens{first, frame.add(first, frame.index(count))};
    return ranges.computePairs(frame.add(rows.first, i), tokens).any;
  }

  /// Whether the region `mask` may admit one of some tokens: the same in all
  /// lanes.
  Value isAnyAdmitted(Region &mask, Value i, Value first, int64_t count) {
    Value query = getQueryPosition(frame, op, rows, i);
    Value lastHead = plan.rows == 1 ? firstHead : getQueryHead(plan.rows - 1);
    RowBox box{rows.batch, {firstHead, lastHead}, {query, query}, rows.tokens};
    Value last = frame.add(first, frame.index(count - 1));
    return computePairs(frame, mask, box, {first, last}).any;
  }

  /// Adds the tokens of a step to sums.
  Sums addTokens(Value first, Value i, Value end, ValueRange sums) {
    SmallVector<Token> tokens;
    for (int64_t t = 0; t < plan.tokens; ++t) {
      Value offset = frame.index(t * (kWarp / plan.lanes));
      tokens.push_back(loadToken(frame.add(first, offset), i, end));
    }
    ScoreRegions regions(frame, op, rows);
    for (const Token &token : tokens)
      regions.addColumn(token.number);
    Sums next(sums);
    for (int64_t g = 0; g < plan.rows; ++g) {
      regions.addRow(getQueryHead(g), i);
      SmallVector<Value> scores;
      Value most = sums[g];
      for (auto [t, token] : llvm::enumerate(tokens)) {
        Value score = regions.apply(computeScore(token, g), g, t);
        scores.push_back(f.select(token.isSeen, score, f.constant(kLowest)));
        most = f.max(most, scores.back());
      }
      next[g] = reduce(most, /*isMax=*/true, kWarp / plan.lanes, plan.lanes);
      addRow(g, tokens, scores, f.exp2(f.sub(sums[g], next[g])), next);
    }
    return next;
  }

  void addRow(int64_t g, ArrayRef<Token> tokens, ArrayRef<Value> scores,
              Value shrink, Sums &next) {
    Value &total = next[plan.rows + g];
    total = f.mul(total, shrink);
    MutableArrayRef<Value> pieces = getPieces(next, g);
    for (Value &piece : pieces)
      piece = f.mul(piece, f.splat(shrink, plan.valueWidth));
    for (auto [token, score] : llvm::zip_equal(tokens, scores)) {
      Value weight =
          f.select(token.isSeen, f.exp2(f.sub(score, next[g])), f.constant(0));
      total = f.add(total, weight);
      if (token.valueScale)
        weight = f.select(token.isSeen, f.mul(weight, token.valueScale),
                          f.constant(0));
      // What an id of -1 stands for may be no number, nor what a region
      // excludes.
      Value none = f.constant(f.vectorOf(plan.valueWidth), 0);
      Value isSeen = isAdmitted(token.isSeen, score);
      for (auto [piece, value] : llvm::zip_equal(pieces, token.value))
        piece = f.fma(f.splat(weight, plan.valueWidth),
                      f.select(isSeen, value, none), piece);
    }
  }

  /// The sum of a query head over all lanes of an element, and its pieces.
  std::pair<RowSum, SmallVector<Value>> reduceRow(const Sums &sums, int64_t g) {
    int64_t count = kWarp / plan.lanes;
    Value total =
        reduce(sums[plan.rows + g], /*isMax=*/false, count, plan.lanes);
    SmallVector<Value> values;
    for (int64_t p = 0; p < valuePieces; ++p)
      values.push_back(reduceElements(sums[2 * plan.rows + g * valuePieces + p],
                                      count, plan.lanes));
    return {RowSum{sums[g], total, f.constant(1)}, values};
  }

  void endRows(const Sums &sums) {
    Value isFirst = frame.equal(warp, frame.index(0));
    for (int64_t g = 0; g < plan.rows; ++g) {
      auto [scores, values] = reduceRow(sums, g);
      Value queryHead = getQueryHead(g);
      RowSum sum = addSink(scores, queryHead);
      Value factors = f.splat(getQuotient(sum, queryHead), plan.valueWidth);
      frame.runIf(isFirst, [&, &scores = scores, &values = values] {
        for (auto [p, value] : llvm::enumerate(values))
          storeDense(frame, f.mul(value, factors), op.getOut(),
                     {row, queryHead}, getElement(p, plan.valueWidth));
        frame.runIf(frame.equal(lane, frame.index(0)), [&] {
          storeStatistics(scores, sum, /*bias=*/0, row, queryHead);
        });
      });
    }
  }

  SeenRanges ranges;
  WarpPlan plan;
  int64_t keyPieces, valuePieces;
  /// The lane among those of a token, and the token of the warp.
  Value thread, lane, warp;
  Value row, firstHead;
  QueryRows rows;
  /// Pieces of the query of each head of the warp.
  SmallVector<Value> queries;
};

} // namespace

void kvcache::expandForGPU(AttentionOp op, const Frame &frame,
                           const WarpPlan &plan) {
  GPUAttention(op, frame, plan).expand();
  if (!op.getWorkspace())
    return;
  // The rows of a warp are those of a token.
  int64_t heads =
      cast<CacheTypeInterface>(op.getKeyCache().getType()).getNumHeads();
  int64_t group = cast<MemRefType>(op.getQ().getType()).getDimSize(1) / heads;
  expandMerge(op, frame,
              {TileUnit::Warps, group, /*tokens=*/1, /*stages=*/1, /*parts=*/1,
               /*loads=*/1},
              /*bias=*/0);
}
