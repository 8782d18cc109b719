//===- Workspace.h - Partial results of attention ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_WORKSPACE_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_WORKSPACE_H

#include "../ExpandOps/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The counter of a schedule, and the partial results of slots in a workspace:
/// weighted sums of values, the maxima and sums of exponentials.
class Workspace {
public:
  Workspace(const Frame &frame, Value memory, Value slots,
            const WorkspaceShape &shape);

  /// The number of a part of a slot.
  Value getPart(Value slot, Value part) const;

  /// The memory of sums, by part, head and element, and that of states, by
  /// part and head: the maximum, and the sum of exponentials.
  Value getSums() const { return sums; }
  Value getStates() const { return states; }

  Value loadSums(Value part, Value head, Value d, int64_t count) const;
  void storeSums(Value sums, Value part, Value head, Value d) const;
  /// The maximum and the sum of exponentials.
  std::pair<Value, Value> loadState(Value part, Value head) const;
  void storeState(Value max, Value total, Value part, Value head) const;

  /// Takes a unit of a schedule, and returns its number as an i32.
  Value takeUnit() const;
  /// Sets the number of units that are taken to 0.
  void clearUnits() const;

private:
  Frame frame;
  OpBuilder &builder;
  Location loc;
  WorkspaceShape shape;
  Value sums, states, scheduled;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_WORKSPACE_H
