//===- WarpRow.cpp - Attention of a row by a warp -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRow.h"

#include "../Attention/ScoreMath.h"
#include "../Attention/ScoreRegions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

void WarpRow::begin(const QueryRows &someRows, Value number, Value batchRow) {
  rows = someRows;
  i = number;
  row = batchRow;
  const WarpSizes &warp = lanes.sizes;
  checkRow(frame, op, row);
  ScoreMath math(frame, op);
  Value factor = math.getFactor();
  queries.clear();
  for (int64_t g = 0; g < warp.rows; ++g) {
    Value queryHead = lanes.getQueryHead(frame, g);
    Value factors =
        f.splat(math.getFactor(factor, lanes.head, queryHead), warp.keyWidth);
    for (int64_t p = 0; p < lanes.keyPieces; ++p) {
      Value q =
          loadJoined(frame, getQueries(op), {row, queryHead},
                     lanes.getElement(frame, p, warp.keyWidth), warp.keyWidth);
      queries.push_back(
          f.mul(convertLanes(frame, q, frame.builder.getF32Type()), factors));
    }
  }
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

MutableArrayRef<Value> WarpRow::getPieces(State &state, int64_t g) const {
  return MutableArrayRef(state).slice(
      2 * lanes.sizes.rows + g * lanes.valuePieces, lanes.valuePieces);
}

WarpRow::State WarpRow::getInitialState() const {
  int64_t heads = lanes.sizes.rows;
  State state(heads, f.constant(kLowest));
  state.append(heads, f.constant(0));
  state.append(heads * lanes.valuePieces,
               f.constant(f.vectorOf(lanes.sizes.valueWidth), 0));
  return state;
}

Value WarpRow::computeScore(const WarpToken &token, int64_t g) const {
  Value products;
  for (int64_t p = 0; p < lanes.keyPieces; ++p) {
    Value q = queries[g * lanes.keyPieces + p];
    products =
        products ? f.fma(q, token.key[p], products) : f.mul(q, token.key[p]);
  }
  Value sum = lanes.sumElements(f, f.sumOf(products));
  if (token.keyScale)
    sum = f.mul(sum, token.keyScale);
  return ScoreMath(frame, op).applySoftCap(sum);
}

WarpRow::State WarpRow::addRange(const TokenRange &range) {
  int64_t step = lanes.sizes.tokens * lanes.countTokens();
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, range.from, range.to, frame.index(step),
      getInitialState(),
      [&](OpBuilder &, Location, Value first, ValueRange state) {
        auto yield = [&](ValueRange next) {
          scf::YieldOp::create(frame.builder, frame.loc, next);
        };
        auto add = [&] {
          yield(addTokens(frame.add(first, lanes.warp), range.to, state));
        };
        Value isAny = tokens.isAnySeen(rows, i, first, step);
        if (!isAny)
          return add();
        auto branch = scf::IfOp::create(
            frame.builder, frame.loc, isAny,
            [&](OpBuilder &, Location) { add(); },
            [&](OpBuilder &, Location) { yield(state); });
        yield(branch.getResults());
      });
  return State(loop.getResults());
}

WarpRow::State WarpRow::addTokens(Value first, Value end, ValueRange state) {
  SmallVector<WarpToken> some;
  for (int64_t t = 0; t < lanes.sizes.tokens; ++t) {
    Value offset = frame.index(t * lanes.countTokens());
    some.push_back(tokens.load(rows, i, frame.add(first, offset), end));
  }
  ScoreRegions regions(frame, op, rows);
  for (const WarpToken &token : some)
    regions.addColumn(token.number);
  State next(state);
  for (int64_t g = 0; g < lanes.sizes.rows; ++g) {
    regions.addRow(lanes.getQueryHead(frame, g), i);
    SmallVector<Value> scores;
    Value most = state[g];
    for (auto [t, token] : llvm::enumerate(some)) {
      Value score = regions.apply(computeScore(token, g), g, t);
      scores.push_back(f.select(token.isSeen, score, f.constant(kLowest)));
      most = f.max(most, scores.back());
    }
    next[g] = lanes.reduceTokens(f, most, /*isMax=*/true);
    addRow(g, some, scores, f.exp2(f.sub(state[g], next[g])), next);
  }
  return next;
}

void WarpRow::addRow(int64_t g, ArrayRef<WarpToken> some,
                     ArrayRef<Value> scores, Value shrink, State &next) const {
  int64_t width = lanes.sizes.valueWidth;
  ScoreMath math(frame, op);
  Value &rowSum = next[lanes.sizes.rows + g];
  rowSum = f.mul(rowSum, shrink);
  MutableArrayRef<Value> pieces = getPieces(next, g);
  for (Value &piece : pieces)
    piece = f.mul(piece, f.splat(shrink, width));
  for (auto [token, score] : llvm::zip_equal(some, scores)) {
    Value prob =
        f.select(token.isSeen, f.exp2(f.sub(score, next[g])), f.constant(0));
    rowSum = f.add(rowSum, prob);
    if (token.valueScale)
      prob =
          f.select(token.isSeen, f.mul(prob, token.valueScale), f.constant(0));
    // What an id of -1 stands for may be no number, nor what a region
    // excludes.
    Value none = f.constant(f.vectorOf(width), 0);
    Value isSeen = math.isAdmitted(token.isSeen, score);
    for (auto [piece, value] : llvm::zip_equal(pieces, token.value))
      piece = f.fma(f.splat(prob, width), f.select(isSeen, value, none), piece);
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

std::pair<RowState, SmallVector<Value>> WarpRow::reduceRow(const State &state,
                                                           int64_t g) const {
  int64_t heads = lanes.sizes.rows;
  Value rowSum = lanes.reduceTokens(f, state[heads + g], /*isMax=*/false);
  SmallVector<Value> acc;
  for (int64_t p = 0; p < lanes.valuePieces; ++p)
    acc.push_back(
        lanes.sumTokens(f, state[2 * heads + g * lanes.valuePieces + p]));
  return {RowState{state[g], rowSum, f.constant(1)}, acc};
}

void WarpRow::storeOutputs(const State &state) const {
  int64_t width = lanes.sizes.valueWidth;
  RowNormalizer normalizer(frame, RowOperands::get(op));
  Value isFirst = frame.equal(lanes.warp, frame.index(0));
  for (int64_t g = 0; g < lanes.sizes.rows; ++g) {
    auto [scores, acc] = reduceRow(state, g);
    Value queryHead = lanes.getQueryHead(frame, g);
    RowState all = normalizer.addSink(scores, queryHead);
    Value factors =
        f.splat(normalizer.getQuotient(all, lanes.head, queryHead), width);
    frame.runIf(isFirst, [&, &scores = scores, &acc = acc] {
      for (auto [p, piece] : llvm::enumerate(acc))
        storeDense(frame, f.mul(piece, factors), op.getOut(), {row, queryHead},
                   lanes.getElement(frame, p, width));
      frame.runIf(frame.equal(lanes.lane, frame.index(0)), [&] {
        normalizer.storeStatistics(scores, all, /*bias=*/0, row, queryHead);
      });
    });
  }
}

void WarpRow::storeSplit(const State &state, const Workspace &workspace,
                         Value slot, Value split) const {
  Value number = workspace.getSplit(slot, split);
  Value isFirst = frame.equal(lanes.warp, frame.index(0));
  for (int64_t g = 0; g < lanes.sizes.rows; ++g) {
    auto [reduced, acc] = reduceRow(state, g);
    Value queryHead = lanes.getQueryHead(frame, g);
    frame.runIf(isFirst, [&, reduced = reduced, &acc = acc] {
      for (auto [p, piece] : llvm::enumerate(acc))
        workspace.storeAcc(piece, number, queryHead,
                           lanes.getElement(frame, p, lanes.sizes.valueWidth));
      frame.runIf(frame.equal(lanes.lane, frame.index(0)), [&] {
        workspace.storeState(reduced.rowMax, reduced.rowSum, number, queryHead);
      });
    });
  }
}
