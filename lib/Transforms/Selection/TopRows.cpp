//===- TopRows.cpp - Expand kvcache.top_rows ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TopRows.h"

#include "../Builders/Heads.h"
#include "ChunkRanks.h"
#include "RadixThreshold.h"
#include "RowPosition.h"
#include "ScoreKeys.h"

#include "kvcache/IR/CheckOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Threads of a block without a hint.
constexpr int64_t kThreads = 1024;
/// Candidates that a buffer has room for before a search, at least: fewer would
/// make searches frequent.
constexpr int64_t kLeastRoom = 1024;

Value getFlag(const Frame &frame, bool flag) {
  return arith::ConstantIntOp::create(frame.builder, frame.loc, flag, 1);
}

/// The candidates that are selected so far, in ascending order, and those after
/// them whose keys are above the threshold. When it is full, only the k with
/// the largest keys stay, and the least of their keys becomes the threshold:
/// later candidates with an equal key come after k others.
class CandidateBuffer {
public:
  CandidateBuffer(const RowTeam &team, const ChunkRanks &ranks, int64_t k)
      : team(team), frame(team.frame), ranks(ranks), radix(team), k(k),
        size(k + std::max({k, kLeastRoom, 2 * ranks.countCandidates()})),
        keys(frame, size), candidates(frame, size) {}

  /// Selects from the candidates below `end`, and returns how many are left:
  /// at most k.
  Value select(Value end, const ScoreKeys &scores) {
    OpBuilder &builder = frame.builder;
    int64_t chunk = ranks.countCandidates();
    auto loop = scf::ForOp::create(
        builder, frame.loc, frame.index(0), end, frame.index(chunk),
        ValueRange{frame.i32(0), frame.i32(0)},
        [&](OpBuilder &, Location, Value first, ValueRange state) {
          Value count = append(first, scores, state[0], state[1]);
          auto [kept, threshold] = compactIf(
              frame.less(frame.i32(size - chunk), count), count, state[1]);
          scf::YieldOp::create(builder, frame.loc, ValueRange{kept, threshold});
        });
    Value count = loop.getResult(0);
    Value kept =
        compactIf(frame.less(frame.i32(k), count), count, loop.getResult(1))
            .first;
    team.sync();
    return kept;
  }

  /// The candidate at a place, as an i32.
  Value getCandidate(Value place) const { return candidates.load(place); }

private:
  /// Appends the candidates of a chunk with keys above the threshold.
  Value append(Value first, const ScoreKeys &scores, Value count,
               Value threshold) {
    return ranks
        .rank(
            {count, frame.i32(0)},
            [&](Value place) {
              Value candidate = frame.toI32(frame.add(first, place));
              Value key = scores.load(candidate);
              return ScoredCandidate{key, candidate,
                                     frame.below(threshold, key),
                                     getFlag(frame, false)};
            },
            [&](const ScoredCandidate &own, const CandidateCounts &before) {
              frame.runIf(own.isAbove, [&] { store(own, before.above); });
            })
        .above;
  }

  /// If a condition holds, which all threads have, keeps the k largest keys.
  /// Returns the number of candidates and the threshold.
  ValuePair compactIf(Value condition, Value count, Value threshold) {
    return frame.selectPairIf(
        condition,
        [&]() -> ValuePair {
          team.sync();
          Value places = frame.fromI32(count);
          Threshold found = radix.find(keys, places, k);
          compact(places, found);
          return {frame.i32(k), found.key};
        },
        [&]() -> ValuePair { return {count, threshold}; });
  }

  /// Moves the candidates above the threshold, and the first ones equal to it,
  /// to the front.
  void compact(Value end, const Threshold &threshold) {
    OpBuilder &builder = frame.builder;
    Value zero = frame.i32(0);
    auto load = [&](Value place) {
      Value isCandidate = frame.below(place, end);
      Value last = frame.sub(end, frame.index(1));
      Value known = frame.min(place, last);
      Value key = arith::SelectOp::create(builder, frame.loc, isCandidate,
                                          keys.load(known), zero);
      return ScoredCandidate{key, candidates.load(known),
                             frame.below(threshold.key, key),
                             frame.equal(threshold.key, key)};
    };
    auto move = [&](const ScoredCandidate &own, const CandidateCounts &before) {
      Value isFirst = frame.below(before.ties, threshold.ties);
      Value isKeptTie =
          arith::AndIOp::create(builder, frame.loc, own.isTie, isFirst);
      Value isKept =
          arith::OrIOp::create(builder, frame.loc, own.isAbove, isKeptTie);
      frame.runIf(isKept, [&] {
        store(own,
              frame.add(before.above, frame.min(before.ties, threshold.ties)));
      });
    };
    scf::ForOp::create(
        builder, frame.loc, frame.index(0), end,
        frame.index(ranks.countCandidates()), ValueRange{zero, zero},
        [&](OpBuilder &, Location, Value first, ValueRange counts) {
          CandidateCounts all = ranks.rank(
              {counts[0], counts[1]},
              [&](Value place) { return load(frame.add(first, place)); }, move);
          scf::YieldOp::create(builder, frame.loc,
                               ValueRange{all.above, all.ties});
        });
  }

  void store(const ScoredCandidate &own, Value place) {
    keys.store(own.key, frame.fromI32(place));
    candidates.store(own.candidate, frame.fromI32(place));
  }

  RowTeam team;
  const Frame &frame;
  const ChunkRanks &ranks;
  RadixThreshold radix;
  int64_t k, size;
  BlockArray keys, candidates;
};

/// Selects from one row of scores.
class RowSelector {
public:
  RowSelector(TopRowsOp op, const RowTeam &team, ValueRange row)
      : op(op), team(team), frame(team.frame), row(row) {}

  void select() {
    frame.runIf(
        frame.below(row[0], frame.countRows(op.getRowOffsets())),
        [&] { selectRow(); },
        [&] {
          forColumns([&](Value column) {
            storeColumn(column, frame.i32(-1), frame.i32(-1));
          });
        });
  }

private:
  void selectRow() {
    RowPosition position = RowPosition::find(
        frame, {op.getCache(), op.getRowOffsets(), op.getLengths()}, row[0]);
    Value visible = position.visible;
    int64_t width = op.getWidth();
    Value rounded =
        op.getWhole() ? visible : frame.add(visible, frame.index(width - 1));
    Value end = frame.div(rounded, width);
    if (frame.hasChecks) {
      int64_t columns =
          cast<MemRefType>(op.getScores().getType()).getRank() - 1;
      CheckOp::create(
          frame.builder, frame.loc, end,
          frame.add(frame.dim(op.getScores(), columns), frame.index(1)),
          "number of candidates of a row of 'scores'");
    }
    ChunkRanks ranks(team);
    CandidateBuffer buffer(team, ranks, op.countSelected());
    ScoreKeys scores(frame, op, row, end);
    Value count = frame.fromI32(buffer.select(end, scores));
    forColumns([&](Value column) {
      auto [token, isToken] = findToken(buffer, column, count, visible);
      storeToken(column, position.sequence, token, isToken);
    });
  }

  /// The token of a column, and whether there is one.
  ValuePair findToken(const CandidateBuffer &buffer, Value column, Value count,
                      Value visible) {
    int64_t unit = op.countColumnsOfCandidate(), width = op.getWidth();
    Value place = frame.div(column, unit), offset = frame.rem(column, unit);
    return frame.selectPairIf(
        frame.below(place, count),
        [&]() -> ValuePair {
          Value candidate = frame.fromI32(buffer.getCandidate(place));
          Value token = frame.add(frame.mul(candidate, unit), offset);
          Value isToken = op.getExpand() ? frame.below(token, visible)
                                         : getFlag(frame, true);
          return {token, isToken};
        },
        [&]() -> ValuePair {
          Value begin = frame.mul(frame.div(visible, width), width);
          Value token =
              frame.add(begin, frame.sub(column, frame.mul(count, unit)));
          Value isToken = op.getTail() ? frame.below(token, visible)
                                       : getFlag(frame, false);
          return {token, isToken};
        });
  }

  void storeToken(Value column, Value sequence, Value token, Value isToken) {
    Value none = frame.i32(-1);
    Value id = frame.selectIf(
        isToken,
        [&] {
          return frame.toI32(
              encodeRow(frame, op.getCache(), sequence, token, "ids"));
        },
        [&] { return none; });
    storeColumn(column, id,
                arith::SelectOp::create(frame.builder, frame.loc, isToken,
                                        frame.toI32(token), none));
  }

  void storeColumn(Value column, Value id, Value token) {
    SmallVector<Value> place(row);
    place.push_back(column);
    memref::StoreOp::create(frame.builder, frame.loc, id, op.getIds(), place);
    if (op.getTokens())
      memref::StoreOp::create(frame.builder, frame.loc, token, op.getTokens(),
                              place);
  }

  void forColumns(function_ref<void(Value)> body) {
    ArrayRef<int64_t> sizes =
        cast<MemRefType>(op.getIds().getType()).getShape();
    team.forEach(frame.index(sizes.back()), body);
  }

  TopRowsOp op;
  RowTeam team;
  const Frame &frame;
  ValueRange row;
};

} // namespace

/// With checks, the arrays have the sizes that they have in common.
static void checkSizes(TopRowsOp op, const Frame &frame) {
  int64_t rank = cast<MemRefType>(op.getIds().getType()).getRank();
  for (int64_t dimension = 0; dimension < rank - 1; ++dimension) {
    StringRef what = dimension ? "heads" : "rows";
    Size ids{"ids", op.getIds(), dimension};
    frame.checkSize(what, ids, {"scores", op.getScores(), dimension});
    frame.checkSize(what, ids, {"tokens", op.getTokens(), dimension});
  }
}

void kvcache::expand(TopRowsOp op, const Frame &frame) {
  checkSizes(op, frame);
  int64_t rank = cast<MemRefType>(op.getIds().getType()).getRank();
  SmallVector<Value> ends;
  for (int64_t dimension = 0; dimension < rank - 1; ++dimension)
    ends.push_back(frame.dim(op.getIds(), dimension));
  int64_t threads = frame.isGPU ? op.getBlockThreads().value_or(kThreads) : 1;
  frame.forBlocks(
      ends, SmallVector<int64_t>(ends.size(), 1),
      [&](ValueRange row) {
        frame.forThreads({threads}, [&](ValueRange thread) {
          RowSelector(op, RowTeam{frame, thread[0], threads}, row).select();
        });
      },
      /*alongX=*/0);
}
