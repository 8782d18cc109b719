//===- RadixThreshold.h - The k-th largest of some keys ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_RADIXTHRESHOLD_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_RADIXTHRESHOLD_H

#include "../Builders/BlockArray.h"
#include "RowTeam.h"

namespace mlir::kvcache {

/// The k-th largest key, and how many of the k largest are equal to it.
struct Threshold {
  Value key, ties;
};

/// Finds the k-th largest key digit by digit, the highest first: a histogram
/// counts the keys that have the digits found before.
class RadixThreshold {
public:
  explicit RadixThreshold(const RowTeam &team);

  /// Returns the threshold of the first `count` keys, which are unsigned and at
  /// least k. All threads call it, and have stored the keys before.
  Threshold find(const BlockArray &keys, Value count, int64_t k) const;

private:
  /// A digit, and how many of the keys that rank first have it.
  struct Digit {
    Value number, rank;
  };

  /// Counts the keys with the digits of `found` above `shift`, by their digit
  /// there.
  void countDigits(const BlockArray &keys, Value count, Value found,
                   int64_t shift) const;
  /// The digit of the key of a rank, which begins with 1.
  Digit findDigit(Value rank) const;
  /// Goes through the digits of a lane from the largest on. The rank in the
  /// result is 0 if the lane does not have the digit.
  Digit searchLane(Value lane, Value rank) const;

  RowTeam team;
  BlockArray histogram;
  /// The digits that a lane looks at.
  int64_t digitsOfLane;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_RADIXTHRESHOLD_H
