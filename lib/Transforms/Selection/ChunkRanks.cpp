//===- ChunkRanks.cpp - Ranks of the entries of a chunk -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkRanks.h"

#include "WarpScan.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

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
  warpCounts.emplace(team.frame, kWarpLanes);
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

/// The lanes of a warp for which a flag holds, as bits.
static Value ballot(const Frame &frame, Value flag) {
  return NVVM::VoteSyncOp::create(frame.builder, frame.loc,
                                  frame.builder.getI32Type(), frame.i32(-1),
                                  flag, NVVM::VoteSyncKind::ballot);
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
  Value lane = frame.rem(team.thread, kWarpLanes);
  Value warp = frame.div(team.thread, kWarpLanes);
  frame.runIf(frame.equal(lane, frame.index(0)),
              [&] { warpCounts->store(own, warp); });
  team.sync();
  Value warps = frame.index(team.threads / kWarpLanes);
  Value zero = frame.i32(0);
  Value count = frame.selectIf(
      frame.below(lane, warps), [&] { return warpCounts->load(lane); },
      [&] { return zero; });
  WarpScan scan(frame, team.thread, count);
  // The next chunk stores to the array.
  team.sync();
  Value before = frame.sub(scan.getInclusive(frame.toI32(warp)), own);
  return {before, scan.getInclusive(frame.i32(kWarpLanes - 1))};
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
  auto countBits = [&](Value bits) -> Value {
    return math::CtPopOp::create(frame.builder, frame.loc, bits);
  };
  Value lane = frame.rem(team.thread, kWarpLanes);
  Value warp = frame.div(team.thread, kWarpLanes);
  Value first =
      frame.add(frame.mul(warp, kWarpLanes * candidatesOfThread), lane);
  SmallVector<ScoredCandidate> all;
  for (int64_t u = 0; u < candidatesOfThread; ++u)
    all.push_back(load(frame.add(first, frame.index(u * kWarpLanes))));
  Value lower =
      frame.sub(arith::ShLIOp::create(frame.builder, frame.loc, frame.i32(1),
                                      frame.toI32(lane)),
                frame.i32(1));
  auto countLower = [&](Value bits) {
    return countBits(
        arith::AndIOp::create(frame.builder, frame.loc, bits, lower));
  };
  Value own = frame.i32(0);
  SmallVector<Value> ranks;
  for (const ScoredCandidate &each : all) {
    Value above = ballot(frame, each.isAbove), ties = ballot(frame, each.isTie);
    ranks.push_back(
        frame.add(own, pack(frame, countLower(above), countLower(ties))));
    own = frame.add(own, pack(frame, countBits(above), countBits(ties)));
  }
  auto [warpsBefore, total] = addWarps(own);
  for (auto [each, inWarp] : llvm::zip_equal(all, ranks))
    store(each, addPacked(before, frame.add(warpsBefore, inWarp)));
  return addPacked(before, total);
}
