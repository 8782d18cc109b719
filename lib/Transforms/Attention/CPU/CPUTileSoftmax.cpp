//===- CPUTileSoftmax.cpp - The softmax of a tile -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileSoftmax.h"

#include "../RowNormalizer.h"
#include "../ScoreRegions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void CPUTileSoftmax::add(const Step &step) const {
  CPUTileProduct::Weights weights = computeWeights(step);
  // A value that is not seen may be no number.
  ArrayRef<Value> isSeen = weights.isSeen;
  Value all = isSeen.front();
  if (!llvm::all_equal(isSeen))
    for (Value others : isSeen.drop_front())
      all = arith::AndIOp::create(frame.builder, frame.loc, all, others);
  Value isAll = vector::ReductionOp::create(frame.builder, frame.loc,
                                            vector::CombiningKind::AND, all);
  frame.runIf(
      isAll, [&] { addValues(step, {weights.rows, weights.shrinks, {}}); },
      [&] { addValues(step, weights); });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

CPUTileProduct::Weights CPUTileSoftmax::computeWeights(const Step &step) const {
  const CPURow &row = step.row;
  ScoreMath math(frame, op);
  Value flags =
      mask.getFlags(step.rows, row, step.token, step.seen, tile.areGiven());
  Value lowest = f.constant(f.vectorOf(kTileTokens), kLowest);
  Value none = f.constant(f.vectorOf(kTileTokens), 0);
  CPUTileProduct::Weights weights;
  SmallVector<Value> scores;
  for (Value rowScores : computeScores(step)) {
    weights.isSeen.push_back(math.isAdmitted(flags, rowScores));
    scores.push_back(f.select(weights.isSeen.back(), rowScores, lowest));
  }
  // A NaN among the scores of a row makes its sums NaN in any case.
  Value oldMax = memory.loadMaxima(row);
  Value newMax = f.larger(oldMax, f.maximaOf(scores));
  weights.shrinks = f.exp2(f.sub(oldMax, newMax));
  for (auto [k, rowScores] : llvm::enumerate(scores)) {
    Value max = vector::ExtractOp::create(frame.builder, frame.loc, newMax, k);
    Value powers = f.exp2(f.sub(rowScores, f.splat(max, kTileTokens)));
    weights.rows.push_back(f.select(weights.isSeen[k], powers, none));
  }
  Value total =
      f.fma(memory.loadTotals(row), weights.shrinks, f.sumsOf(weights.rows));
  memory.storeMaxima(newMax, row);
  memory.storeTotals(total, row);
  if (tile.hasValueScales())
    for (auto [k, weight] : llvm::enumerate(weights.rows))
      weight = f.select(weights.isSeen[k],
                        f.mul(weight, tile.loadValueScales()), none);
  return weights;
}

SmallVector<Value> CPUTileSoftmax::computeScores(const Step &step) const {
  SmallVector<SmallVector<Value>> products(shape.together);
  for (int64_t first = 0; first < kTileTokens; first += shape.columns) {
    step.prefetch(first);
    addProducts(step, first, products);
  }
  ScoreRegions regions(frame, op, step.rows);
  if (!op.getModifiers().empty())
    regions.addColumn(mask.getTokens(step.token));
  SmallVector<Value> scores;
  for (auto [k, product] : llvm::enumerate(products)) {
    Value sums = f.sumsOf(product);
    if (tile.hasKeyScales())
      sums = f.mul(sums, tile.loadKeyScales());
    regions.addRow(frame.add(step.row.queryHead, frame.index(k)), step.row.i);
    scores.push_back(regions.apply(ScoreMath(frame, op).applySoftCap(sums), k,
                                   /*column=*/0));
  }
  return scores;
}

Value CPUTileSoftmax::hasColumn(const Step &step, int64_t first) const {
  return frame.less(frame.add(step.token, frame.index(first)), step.seen.to);
}

void CPUTileSoftmax::addProducts(
    const Step &step, int64_t first,
    SmallVector<SmallVector<Value>> &products) const {
  int64_t columns = shape.columns;
  SmallVector<Value> zeros(shape.together * columns,
                           f.constant(f.vectorOf(shape.keyLanes), 0));
  ValueRange found;
  if (first == 0) {
    found = product.multiplyKeys(step.row, first, zeros);
  } else {
    auto yield = [&](ValueRange sums) {
      scf::YieldOp::create(frame.builder, frame.loc, sums);
    };
    auto sums = scf::IfOp::create(
        frame.builder, frame.loc, hasColumn(step, first),
        [&](OpBuilder &, Location) {
          yield(product.multiplyKeys(step.row, first, zeros));
        },
        [&](OpBuilder &, Location) { yield(zeros); });
    found = sums.getResults();
  }
  for (int64_t k = 0; k < shape.together; ++k)
    llvm::append_range(products[k], found.slice(k * columns, columns));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void CPUTileSoftmax::addValues(const Step &step,
                               const CPUTileProduct::Weights &weights) const {
  for (int64_t first = 0; first < kTileTokens; first += shape.columns) {
    step.prefetch(first + shape.columns / 2);
    auto add = [&] { product.addValues(step.row, first, weights); };
    if (first == 0 || weights.isSeen.empty())
      add();
    else
      frame.runIf(hasColumn(step, first), add);
  }
}
