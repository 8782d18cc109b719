//===- SplitCandidates.cpp - The candidates of splits of a row ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitCandidates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The scores of a line of memory, of which splits have whole ones.
constexpr int64_t kScoresOfLine = 32;

ValuePair SplitCandidates::getRange(Value split, Value candidates) const {
  int64_t all = kScoresOfLine * splits;
  Value lines = frame.div(frame.add(candidates, frame.index(all - 1)), all);
  Value size = frame.mul(lines, kScoresOfLine);
  Value begin = frame.mul(split, size);
  return {begin, frame.min(frame.add(begin, size), candidates)};
}

void SplitCandidates::store(const RowTeam &team, Value split,
                            const CandidateBuffer &buffer, Value count) const {
  team.forEach(frame.index(k), [&](Value place) {
    Value isCandidate = frame.below(place, count);
    auto [candidate, key] = frame.selectPairIf(
        isCandidate,
        [&]() -> ValuePair {
          return {buffer.getCandidate(place), buffer.getKey(place)};
        },
        [&]() -> ValuePair { return {frame.i32(0), frame.i32(0)}; });
    memref::StoreOp::create(frame.builder, frame.loc, candidate, workspace,
                            getIndex(split, place));
    memref::StoreOp::create(frame.builder, frame.loc, key, workspace,
                            getIndex(split, frame.add(place, frame.index(k))));
  });
}

ValuePair SplitCandidates::load(Value place) const {
  // Loads without a branch are in flight together.
  Value last = frame.sub(countPlaces(), frame.index(1));
  Value known = frame.min(place, last);
  Value split = frame.div(known, k), column = frame.rem(known, k);
  auto load = [&](Value column) -> Value {
    return memref::LoadOp::create(frame.builder, frame.loc, workspace,
                                  getIndex(split, column));
  };
  Value key = arith::SelectOp::create(
      frame.builder, frame.loc, frame.below(place, countPlaces()),
      load(frame.add(column, frame.index(k))), frame.i32(0));
  return {key, load(column)};
}

SmallVector<Value> SplitCandidates::getIndex(Value split, Value column) const {
  SmallVector<Value> index(row);
  index.append({split, column});
  return index;
}
