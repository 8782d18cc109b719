//===- SplitStates.h - The states of splits, and their sum ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_SPLITSTATES_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_SPLITSTATES_H

#include "RowNormalizer.h"

namespace mlir::kvcache {

/// The splits of a row that are added one after the other. With more splits,
/// number p is added to those before whose numbers are as many apart.
constexpr int64_t kAddedSplits = 8;

/// The exponent that probs are relative to, their sum, and the accumulator.
struct SplitState {
  Value rowMax, rowSum, acc;
};

/// Adds splits in f32.
class SplitAdder {
public:
  SplitAdder(const Frame &frame, int64_t width) : f(frame), width(width) {}

  SplitState getNone() const;
  SplitState add(ArrayRef<SplitState> splits) const;
  /// A split where a condition holds, and otherwise none.
  SplitState selectIf(Value condition, const SplitState &split) const;

  DeviceMath f;
  int64_t width;
};

/// Where the elements of a thread belong: the row, the query head, the first
/// element, and the head of the cache, which is null without scales of values.
struct MergedPlace {
  Value row, queryHead, d, head;
};

/// Stores the elements of a row whose splits have been added. The thread with
/// the first element stores its statistics. The largest score is `bias` more
/// than the exponent.
void storeMerged(const Frame &frame, const RowOperands &operands,
                 const SplitState &state, const MergedPlace &place, float bias);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_SPLITSTATES_H
