//===- ChunkRanks.cpp - Ranks of the entries of a chunk -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkRanks.h"

#include "../Builders/WarpVote.h"
#include "WarpScan.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Candidates of a thread. With more, 512 threads would spill on sm_80.
constexpr int64_t kCandidatesOfThread = 4;
/// Bits of the first of two packed counts, enough for a chunk.
constexpr int64_t kPackedBits = 16;

ChunkRanks::ChunkRanks(const RowTeam &team) : team(team) {
  if (!team.frame.isGPU)
    return;
  candidatesOfThread = kCandidatesOfThread;
  warpCounts.emplace(team.frame, kWarp);
}

/// A flag as a number.
static Value toNumber(const Frame &frame, Value flag) {
  return arith::ExtUIOp::create(frame.builder, frame.loc,
                                frame.builder.getI32Type(), flag);
}

/// A count of candidates above the threshold, packed with one of ties.
static Value pack(const Frame &frame, Value above, Value ties) {
  return frame.add(above, frame.mul(ties, int64_t(1) << kPackedBits));
}

CandidateCounts ChunkRanks::addPacked(const CandidateCounts &counts,
                                      Value packed) const {
  const Frame &frame = team.frame;
  int64_t unit = int64_t(1) << kPackedBits;
  return {frame.add(counts.above, frame.rem(packed, unit)),
          frame.add(counts.ties, frame.div(packed, unit))};
}

std::pair<Value, Value> ChunkRanks::addWarps(Value own) const {
  const Frame &frame = team.frame;
  Value lane = frame.rem(team.thread, kWarp);
  Value warp = frame.div(team.thread, kWarp);
  frame.runIf(frame.equal(lane, frame.index(0)),
              [&] { warpCounts->store(own, warp); });
  team.sync();
  Value warps = frame.index(team.threads / kWarp);
  Value zero = frame.i32(0);
  Value count = frame.selectIf(
      frame.below(lane, warps), [&] { return warpCounts->load(lane); },
      [&] { return zero; });
  WarpScan scan(frame, team.thread, count);
  // The next chunk stores to the array.
  team.sync();
  Value before = frame.sub(scan.getInclusive(frame.toI32(warp)), own);
  return {before, scan.getInclusive(frame.i32(kWarp - 1))};
}

CandidateCounts ChunkRanks::rank(
    const CandidateCounts &before,
    function_ref<ScoredCandidate(Value place)> load,
    function_ref<void(const ScoredCandidate &, const CandidateCounts &)> store)
    const {
  const Frame &frame = team.frame;
  if (!frame.isGPU) {
    ScoredCandidate own = load(frame.index(0));
    store(own, before);
    return {frame.add(before.above, toNumber(frame, own.isAbove)),
            frame.add(before.ties, toNumber(frame, own.isTie))};
  }
  Value lane = frame.rem(team.thread, kWarp);
  Value warp = frame.div(team.thread, kWarp);
  Value first = frame.add(frame.mul(warp, kWarp * candidatesOfThread), lane);
  SmallVector<ScoredCandidate> all;
  for (int64_t u = 0; u < candidatesOfThread; ++u)
    all.push_back(load(frame.add(first, frame.index(u * kWarp))));
  Value lower = getLowerLanes(frame, lane);
  Value own = frame.i32(0);
  SmallVector<Value> ranks;
  for (const ScoredCandidate &each : all) {
    Value above = ballot(frame, each.isAbove), ties = ballot(frame, each.isTie);
    ranks.push_back(frame.add(own, pack(frame, countLanes(frame, above, lower),
                                        countLanes(frame, ties, lower))));
    own = frame.add(
        own, pack(frame, countLanes(frame, above), countLanes(frame, ties)));
  }
  auto [warpsBefore, total] = addWarps(own);
  for (auto [each, inWarp] : llvm::zip_equal(all, ranks))
    store(each, addPacked(before, frame.add(warpsBefore, inWarp)));
  return addPacked(before, total);
}
