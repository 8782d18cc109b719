//===- PanelSoftmax.cpp - Softmax with rows in lanes ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelSoftmax.h"

#include "../PlanAttention/ExponentBias.h"
#include "PairBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

PanelSoftmax::PanelSoftmax(const HostAttention &attention,
                           const QueryRows &rows, const RowLanes &memory,
                           const TokenTile &tile)
    : attention(attention), rows(rows), memory(memory), tile(tile),
      lanes(attention.frame), areProducts(memory.factors && !tile.keyScales &&
                                          !attention.op.getSoftCap() &&
                                          attention.op.getModifiers().empty()) {
}

void PanelSoftmax::run(const PanelScores &scores) const {
  const Frame &frame = attention.frame;
  frame.loop(frame.index(0), scores.panel.count, frame.index(kLanes),
             [&](Value lane) {
               runRows(scores, {frame.add(scores.panel.first, lane), lane});
             });
}

void PanelSoftmax::runRows(const PanelScores &scores, const Rows &rows) const {
  const DeviceMath &f = attention.f;
  Value oldMax = lanes.load(memory.rowMax, rows.inBlock);
  // A NaN among the scores of a row makes its sums NaN in any case.
  Value max = growMax(oldMax, storeScores(scores, rows));
  Value factors = f.exp2(f.sub(oldMax, max));
  Value sum = storeProbs(scores, rows, max);
  sum = f.fma(lanes.load(memory.rowSum, rows.inBlock), factors, sum);
  lanes.store(max, memory.rowMax, rows.inBlock);
  lanes.store(sum, memory.rowSum, rows.inBlock);
  rescale(rows, factors);
}

Value PanelSoftmax::growMax(Value oldMax, Value largest) const {
  const DeviceMath &f = attention.f;
  Value border = f.add(oldMax, getExponentSlack(attention.op));
  Value isMore =
      arith::CmpFOp::create(attention.frame.builder, attention.frame.loc,
                            arith::CmpFPredicate::OGT, largest, border);
  return f.select(isMore, largest, oldMax);
}

Value PanelSoftmax::storeScores(const PanelScores &scores,
                                const Rows &rowsOfLanes) const {
  const DeviceMath &f = attention.f;
  const Frame &frame = attention.frame;
  OpBuilder &builder = attention.frame.builder;
  // Only a region `mask` may admit all tokens.
  bool hasRegions = !attention.op.getModifiers().empty() && !scores.areAllSeen;
  ScoreRegions regions(frame, attention.op, rows, ScoreLanes::Rows);
  if (hasRegions) {
    auto loadIndices = [&](Value memory) -> Value {
      Value numbers = lanes.load(memory, rowsOfLanes.inBlock);
      auto type = VectorType::get(kLanes, builder.getIndexType());
      return arith::IndexCastOp::create(builder, attention.frame.loc, type,
                                        numbers);
    };
    regions.setRowLanes(loadIndices(memory.heads),
                        loadIndices(memory.positions));
  }
  Value lowest = f.constant(f.vectorOf(kLanes), kLowest);
  Value factors = memory.factors
                      ? lanes.load(memory.factors, rowsOfLanes.inBlock)
                      : Value();
  auto loop = scf::ForOp::create(
      builder, attention.frame.loc, scores.begin, scores.end,
      frame.index(kTokenSteps), lowest,
      [&](OpBuilder &, Location, Value first, ValueRange carried) {
        SmallVector<Value> all;
        for (int64_t step = 0; step < kTokenSteps; ++step) {
          Value j = frame.add(first, frame.index(step));
          Value score =
              lanes.load(memory.scores, lanes.at(rowsOfLanes.inPanel, j));
          if (memory.factors)
            score = f.mul(score, factors);
          if (tile.keyScales)
            score = f.mul(score, lanes.broadcast(tile.keyScales, j));
          score = attention.scores.applySoftCap(score);
          if (hasRegions) {
            regions.addToken(frame.add(scores.token, j));
            score = regions.apply(score, step, /*column=*/0);
          }
          if (!areProducts)
            lanes.store(score, memory.scores, lanes.at(rowsOfLanes.inPanel, j));
          if (!scores.areAllSeen)
            score = f.select(attention.scores.isAdmitted(
                                 isSeen(scores, rowsOfLanes, j), score),
                             score, lowest);
          all.push_back(score);
        }
        Value largest =
            f.larger(f.larger(all[0], all[1]), f.larger(all[2], all[3]));
        scf::YieldOp::create(builder, attention.frame.loc,
                             f.larger(carried.front(), largest));
      });
  return loop.getResult(0);
}

Value PanelSoftmax::storeProbs(const PanelScores &scores, const Rows &rows,
                               Value max) const {
  const DeviceMath &f = attention.f;
  const Frame &frame = attention.frame;
  auto loop = scf::ForOp::create(
      attention.frame.builder, attention.frame.loc, scores.begin, scores.end,
      frame.index(kTokenSteps), f.constant(f.vectorOf(kLanes), 0),
      [&](OpBuilder &, Location, Value first, ValueRange carried) {
        SmallVector<Value> sums, probs;
        for (int64_t step = 0; step < kTokenSteps; ++step) {
          Prob prob =
              getProb(scores, rows, max, frame.add(first, frame.index(step)));
          sums.push_back(prob.unscaled);
          probs.push_back(prob.scaled);
        }
        storeSteps(probs, rows, first);
        Value sum = f.add(f.add(sums[0], sums[1]), f.add(sums[2], sums[3]));
        scf::YieldOp::create(attention.frame.builder, attention.frame.loc,
                             f.add(carried.front(), sum));
      });
  return loop.getResult(0);
}

PanelSoftmax::Prob PanelSoftmax::getProb(const PanelScores &scores,
                                         const Rows &rows, Value max,
                                         Value j) const {
  const DeviceMath &f = attention.f;
  Value none = f.constant(f.vectorOf(kLanes), -0.0f);
  Value score = lanes.load(memory.scores, lanes.at(rows.inPanel, j));
  Value power = f.sub(score, max);
  if (areProducts)
    power =
        f.fma(score, lanes.load(memory.factors, rows.inBlock), f.negate(max));
  Value prob = f.exp2(power);
  Value isAdmitted;
  if (!scores.areAllSeen) {
    isAdmitted = attention.scores.isAdmitted(isSeen(scores, rows, j), score);
    prob = f.select(isAdmitted, prob, none);
  }
  if (!tile.valueScales)
    return {prob, prob};
  Value scaled = f.mul(prob, lanes.broadcast(tile.valueScales, j));
  // Rounding would make -0 of a NaN whose payload is all ones.
  if (attention.usesPairs())
    scaled = f.select(
        arith::CmpFPredicate::UNO, scaled, 0,
        f.constant(scaled, std::numeric_limits<float>::quiet_NaN()), scaled);
  if (isAdmitted)
    scaled = f.select(isAdmitted, scaled, none);
  return {prob, scaled};
}

// Pairs take the place of scores that are read already.
void PanelSoftmax::storeSteps(ArrayRef<Value> probs, const Rows &rows,
                              Value first) const {
  const Frame &frame = attention.frame;
  auto store = [&](Value vector, Value row) {
    lanes.store(vector, memory.scores, lanes.at(rows.inPanel, row));
  };
  if (!attention.usesPairs()) {
    for (auto [step, prob] : llvm::enumerate(probs))
      store(prob, frame.add(first, frame.index(step)));
    return;
  }
  Value firstPair = frame.div(first, 2);
  for (int64_t step = 0; step < kTokenSteps; step += 2) {
    Value pair = PairBuilder(frame).round(probs[step], probs[step + 1]);
    pair = arith::BitcastOp::create(frame.builder, frame.loc,
                                    attention.f.vectorOf(kLanes), pair);
    store(pair, frame.add(firstPair, frame.index(step / 2)));
  }
}

void PanelSoftmax::rescale(const Rows &rows, Value factors) const {
  const DeviceMath &f = attention.f;
  const Frame &frame = attention.frame;
  frame.runIf(attention.changesAny(factors), [&] {
    frame.loop(frame.index(0), frame.index(attention.sizes.valueSize),
               frame.index(1), [&](Value d) {
                 SmallVector<Value> indices = lanes.at(rows.inBlock, d);
                 Value acc = lanes.load(memory.acc, indices);
                 lanes.store(f.mul(acc, factors), memory.acc, indices);
               });
  });
}

Value PanelSoftmax::isSeen(const PanelScores &scores, const Rows &rows,
                           Value j) const {
  const Frame &frame = attention.frame;
  OpBuilder &builder = attention.frame.builder;
  Location loc = attention.frame.loc;
  Value token = lanes.splat(frame.toI32(frame.add(scores.token, j)));
  Value distance = arith::SubIOp::create(builder, loc, token,
                                         lanes.load(memory.from, rows.inBlock));
  Value seen =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, distance,
                            lanes.load(memory.length, rows.inBlock));
  if (!memory.seenBits)
    return seen;
  Value word =
      lanes.load(memory.seenBits, {frame.div(j, kWordTokens), rows.inBlock});
  Value shift = lanes.splat(frame.toI32(frame.rem(j, kWordTokens)));
  word = arith::ShRUIOp::create(builder, loc, word, shift);
  Value bit = arith::TruncIOp::create(
      builder, loc, VectorType::get(kLanes, builder.getI1Type()), word);
  return arith::AndIOp::create(builder, loc, seen, bit);
}
