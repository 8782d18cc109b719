//===- WarpScan.h - Sums over the lanes of a warp ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_WARPSCAN_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_WARPSCAN_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// Adds a number of each lane of a warp to those of the lanes before.
class WarpScan {
public:
  /// `thread` is the number of the thread in its block, and `number` an i32.
  WarpScan(const Frame &frame, Value thread, Value number);

  /// The sum up to this lane, without its own number.
  Value getExclusive() const { return frame.sub(inclusive, number); }
  /// The sum up to a lane, with its number; `lane` is an i32.
  Value getInclusive(Value lane) const { return shuffle(inclusive, lane); }
  /// A value of a lane.
  Value shuffle(Value value, Value lane) const;

private:
  const Frame &frame;
  Value number, inclusive;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_WARPSCAN_H
