//===- CandidateBuffer.h - The candidates with the largest keys -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_CANDIDATEBUFFER_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_CANDIDATEBUFFER_H

#include "ChunkRanks.h"
#include "RadixThreshold.h"

namespace mlir::kvcache {

/// The candidates that are selected so far, in ascending order, and those after
/// them whose keys are above the threshold. When it is full, only the k with
/// the largest keys stay, and the least of their keys becomes the threshold:
/// later candidates with an equal key come after k others.
class CandidateBuffer {
public:
  CandidateBuffer(const RowTeam &team, const ChunkRanks &ranks, int64_t k);

  /// Returns the key and the number of the candidate at a place, which may be
  /// after the last one; the key is 0 if there is none. The numbers ascend.
  using Load = function_ref<ValuePair(Value place)>;
  /// Selects from the places from `begin` up to `end`, and returns how many
  /// candidates are left: at most k.
  Value select(Value begin, Value end, Load load);

  /// The candidate and its key at a place of the buffer, as i32.
  Value getCandidate(Value place) const { return candidates.load(place); }
  Value getKey(Value place) const { return keys.load(place); }

private:
  /// Appends the candidates of a chunk with keys above the threshold.
  Value append(Value first, Load load, Value count, Value threshold);
  /// If a condition holds, which all threads have, keeps the k largest keys.
  /// Returns the number of candidates and the threshold.
  ValuePair compactIf(Value condition, Value count, Value threshold);
  /// Moves the candidates above the threshold, and the first ones equal to it,
  /// to the front.
  void compact(Value end, const Threshold &threshold);
  void store(const ScoredCandidate &own, Value place);

  RowTeam team;
  const Frame &frame;
  const ChunkRanks &ranks;
  RadixThreshold radix;
  int64_t k, size;
  BlockArray keys, candidates;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_CANDIDATEBUFFER_H
