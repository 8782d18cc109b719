//===- ChunkRanks.h - Ranks of the entries of a chunk -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_CHUNKRANKS_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_CHUNKRANKS_H

#include "../Builders/BlockArray.h"
#include "RowTeam.h"

namespace mlir::kvcache {

/// A candidate with its key, and whether the key is above the threshold or
/// equal to it. Nothing holds for a place after the last candidate.
struct ScoredCandidate {
  Value key, candidate, isAbove, isTie;
};

/// Numbers of candidates above the threshold, and equal to it.
struct CandidateCounts {
  Value above, ties;
};

/// Ranks candidates that are in ascending order. A chunk is the candidates that
/// a team loads at once; on the CPU one.
class ChunkRanks {
public:
  explicit ChunkRanks(const RowTeam &team);

  /// The candidates of a chunk.
  int64_t countCandidates() const { return team.threads * candidatesOfThread; }

  /// Calls `load` with each place of a chunk, then `store` with what it
  /// returned and the counts of all candidates before. `before` are those of
  /// earlier chunks. Returns the counts with this chunk. All threads have
  /// loaded before one stores, so `store` may write what the chunk was.
  CandidateCounts
  rank(const CandidateCounts &before,
       function_ref<ScoredCandidate(Value place)> load,
       function_ref<void(const ScoredCandidate &, const CandidateCounts &)>
           store) const;

private:
  /// The counts of the warps before, and of all warps, from a warp's own: both
  /// numbers in one of 32 bits.
  std::pair<Value, Value> addWarps(Value own) const;
  /// Unpacks counts and adds them.
  CandidateCounts addPacked(const CandidateCounts &counts, Value packed) const;

  RowTeam team;
  /// Candidates of a thread, whose loads are in flight together.
  int64_t candidatesOfThread = 1;
  std::optional<BlockArray> warpCounts;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_CHUNKRANKS_H
