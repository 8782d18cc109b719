//===- WarpRow.cpp - Attention of a row by a warp -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRow.h"

#include "ScoreMath.h"
#include "ScoreRegions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

void WarpRow::begin(const QueryRows &someRows, Value number, Value batchRow) {
  rows = someRows;
  i = number;
  row = batchRow;
  const WarpPlan &plan = lanes.plan;
  checkRow(frame, op, row);
  ScoreMath math(frame, op);
  Value factor = math.getFactor();
  queries.clear();
  for (int64_t g = 0; g < plan.rows; ++g) {
    Value queryHead = lanes.getQueryHead(frame, g);
    Value factors =
        f.splat(math.getFactor(factor, lanes.head, queryHead), plan.keyWidth);
    for (int64_t p = 0; p < lanes.keyPieces; ++p) {
      Value q =
          loadJoined(frame, getQueries(op), {row, queryHead},
                     lanes.getElement(frame, p, plan.keyWidth), plan.keyWidth);
      queries.push_back(
          f.mul(convertLanes(frame, q, frame.builder.getF32Type()), factors));
    }
  }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

MutableArrayRef<Value> WarpRow::getPieces(Sums &sums, int64_t g) const {
  return MutableArrayRef(sums).slice(
      2 * lanes.plan.rows + g * lanes.valuePieces, lanes.valuePieces);
}

WarpRow::Sums WarpRow::getNoSums() const {
  int64_t heads = lanes.plan.rows;
  Sums sums(heads, f.constant(kLowest));
  sums.append(heads, f.constant(0));
  sums.append(heads * lanes.valuePieces,
              f.constant(f.vectorOf(lanes.plan.valueWidth), 0));
  return sums;
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

WarpRow::Sums WarpRow::addRange(const TokenRange &range) {
  int64_t step = lanes.plan.tokens * lanes.countTokens();
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, range.from, range.to, frame.index(step),
      getNoSums(), [&](OpBuilder &, Location, Value first, ValueRange sums) {
        auto yield = [&](ValueRange next) {
          scf::YieldOp::create(frame.builder, frame.loc, next);
        };
        auto add = [&] {
          yield(addTokens(frame.add(first, lanes.warp), range.to, sums));
        };
        Value isAny = tokens.isAnySeen(rows, i, first, step);
        if (!isAny)
          return add();
        auto branch = scf::IfOp::create(
            frame.builder, frame.loc, isAny,
            [&](OpBuilder &, Location) { add(); },
            [&](OpBuilder &, Location) { yield(sums); });
        yield(branch.getResults());
      });
  return Sums(loop.getResults());
}

WarpRow::Sums WarpRow::addTokens(Value first, Value end, ValueRange sums) {
  SmallVector<WarpToken> some;
  for (int64_t t = 0; t < lanes.plan.tokens; ++t) {
    Value offset = frame.index(t * lanes.countTokens());
    some.push_back(tokens.load(rows, i, frame.add(first, offset), end));
  }
  ScoreRegions regions(frame, op, rows);
  for (const WarpToken &token : some)
    regions.addColumn(token.number);
  Sums next(sums);
  for (int64_t g = 0; g < lanes.plan.rows; ++g) {
    regions.addRow(lanes.getQueryHead(frame, g), i);
    SmallVector<Value> scores;
    Value most = sums[g];
    for (auto [t, token] : llvm::enumerate(some)) {
      Value score = regions.apply(computeScore(token, g), g, t);
      scores.push_back(f.select(token.isSeen, score, f.constant(kLowest)));
      most = f.max(most, scores.back());
    }
    next[g] = lanes.reduceTokens(f, most, /*isMax=*/true);
    addRow(g, some, scores, f.exp2(f.sub(sums[g], next[g])), next);
  }
  return next;
}

void WarpRow::addRow(int64_t g, ArrayRef<WarpToken> some,
                     ArrayRef<Value> scores, Value shrink, Sums &next) const {
  int64_t width = lanes.plan.valueWidth;
  ScoreMath math(frame, op);
  Value &total = next[lanes.plan.rows + g];
  total = f.mul(total, shrink);
  MutableArrayRef<Value> pieces = getPieces(next, g);
  for (Value &piece : pieces)
    piece = f.mul(piece, f.splat(shrink, width));
  for (auto [token, score] : llvm::zip_equal(some, scores)) {
    Value weight =
        f.select(token.isSeen, f.exp2(f.sub(score, next[g])), f.constant(0));
    total = f.add(total, weight);
    if (token.valueScale)
      weight = f.select(token.isSeen, f.mul(weight, token.valueScale),
                        f.constant(0));
    // What an id of -1 stands for may be no number, nor what a region
    // excludes.
    Value none = f.constant(f.vectorOf(width), 0);
    Value isSeen = math.isAdmitted(token.isSeen, score);
    for (auto [piece, value] : llvm::zip_equal(pieces, token.value))
      piece =
          f.fma(f.splat(weight, width), f.select(isSeen, value, none), piece);
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

std::pair<RowSum, SmallVector<Value>> WarpRow::reduceRow(const Sums &sums,
                                                         int64_t g) const {
  int64_t heads = lanes.plan.rows;
  Value total = lanes.reduceTokens(f, sums[heads + g], /*isMax=*/false);
  SmallVector<Value> values;
  for (int64_t p = 0; p < lanes.valuePieces; ++p)
    values.push_back(
        lanes.sumTokens(f, sums[2 * heads + g * lanes.valuePieces + p]));
  return {RowSum{sums[g], total, f.constant(1)}, values};
}

void WarpRow::storeOutputs(const Sums &sums) const {
  int64_t width = lanes.plan.valueWidth;
  RowNormalizer normalizer(frame, RowOperands::get(op));
  Value isFirst = frame.equal(lanes.warp, frame.index(0));
  for (int64_t g = 0; g < lanes.plan.rows; ++g) {
    auto [scores, values] = reduceRow(sums, g);
    Value queryHead = lanes.getQueryHead(frame, g);
    RowSum sum = normalizer.addSink(scores, queryHead);
    Value factors =
        f.splat(normalizer.getQuotient(sum, lanes.head, queryHead), width);
    frame.runIf(isFirst, [&, &scores = scores, &values = values] {
      for (auto [p, value] : llvm::enumerate(values))
        storeDense(frame, f.mul(value, factors), op.getOut(), {row, queryHead},
                   lanes.getElement(frame, p, width));
      frame.runIf(frame.equal(lanes.lane, frame.index(0)), [&] {
        normalizer.storeStatistics(scores, sum, /*bias=*/0, row, queryHead);
      });
    });
  }
}

void WarpRow::storeSplit(const Sums &sums, const Workspace &workspace,
                         Value slot, Value split) const {
  Value number = workspace.getSplit(slot, split);
  Value isFirst = frame.equal(lanes.warp, frame.index(0));
  for (int64_t g = 0; g < lanes.plan.rows; ++g) {
    auto [sum, values] = reduceRow(sums, g);
    Value queryHead = lanes.getQueryHead(frame, g);
    frame.runIf(isFirst, [&, sum = sum, &values = values] {
      for (auto [p, value] : llvm::enumerate(values))
        workspace.storeAcc(value, number, queryHead,
                           lanes.getElement(frame, p, lanes.plan.valueWidth));
      frame.runIf(frame.equal(lanes.lane, frame.index(0)), [&] {
        workspace.storeState(sum.max, sum.total, number, queryHead);
      });
    });
  }
}
