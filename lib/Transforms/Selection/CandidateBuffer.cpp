//===- CandidateBuffer.cpp - The candidates with the largest keys ---------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CandidateBuffer.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Candidates that a buffer has room for before a search, at least: fewer would
/// make searches frequent.
constexpr int64_t kLeastRoom = 1024;

CandidateBuffer::CandidateBuffer(const RowTeam &team, const ChunkRanks &ranks,
                                 int64_t k)
    : team(team), frame(team.frame), ranks(ranks), radix(team), k(k),
      size(k + std::max({k, kLeastRoom, 2 * ranks.countCandidates()})),
      keys(frame, size), candidates(frame, size) {}

Value CandidateBuffer::select(Value begin, Value end, Load load) {
  OpBuilder &builder = frame.builder;
  int64_t chunk = ranks.countCandidates();
  auto loop = scf::ForOp::create(
      builder, frame.loc, begin, end, frame.index(chunk),
      ValueRange{frame.i32(0), frame.i32(0)},
      [&](OpBuilder &, Location, Value first, ValueRange state) {
        Value count = append(first, load, state[0], state[1]);
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

Value CandidateBuffer::append(Value first, Load load, Value count,
                              Value threshold) {
  auto loadScored = [&](Value place) {
    auto [key, candidate] = load(frame.add(first, place));
    Value no = arith::ConstantIntOp::create(frame.builder, frame.loc, false, 1);
    return ScoredCandidate{key, candidate, frame.below(threshold, key), no};
  };
  auto storeAbove = [&](const ScoredCandidate &own,
                        const CandidateCounts &before) {
    frame.runIf(own.isAbove, [&] { store(own, before.above); });
  };
  return ranks.rank({count, frame.i32(0)}, loadScored, storeAbove).above;
}

ValuePair CandidateBuffer::compactIf(Value condition, Value count,
                                     Value threshold) {
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

void CandidateBuffer::compact(Value end, const Threshold &threshold) {
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

void CandidateBuffer::store(const ScoredCandidate &own, Value place) {
  keys.store(own.key, frame.fromI32(place));
  candidates.store(own.candidate, frame.fromI32(place));
}
