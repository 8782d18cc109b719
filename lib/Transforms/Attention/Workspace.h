//===- Workspace.h - The splits of rows in memory ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_WORKSPACE_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_WORKSPACE_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SplitOps.h"

namespace mlir::kvcache {

/// The counter of a persistent kernel, and the splits of rows in a workspace,
/// as `merge_splits` describes them. A slot is a row that may be split.
class Workspace {
public:
  Workspace(const Frame &frame, Value memory, Value slots,
            const WorkspaceShape &shape);

  /// With checks, memory is large enough for so many slots.
  static void check(const Frame &frame, Value memory, Value slots,
                    const WorkspaceShape &shape);

  /// The number of a split of a slot among all.
  Value getSplit(Value slot, Value split) const;

  /// The memory of accumulators, by split, head and element, and that of
  /// states, by split and head: an exponent, and the sum of probs.
  Value getAccs() const { return accs; }
  Value getStates() const { return states; }

  Value loadAcc(Value split, Value head, Value d, int64_t count) const;
  void storeAcc(Value values, Value split, Value head, Value d) const;
  /// The exponent and the sum of probs.
  std::pair<Value, Value> loadState(Value split, Value head) const;
  void storeState(Value rowMax, Value rowSum, Value split, Value head) const;

  /// Takes a work item, and returns its number as an i32.
  Value takeItem() const;
  /// Sets the number of items that are taken to 0.
  void clearItems() const;

private:
  Frame frame;
  OpBuilder &builder;
  Location loc;
  WorkspaceShape shape;
  Value accs, states, counter;
};

/// Expands the size of a workspace to arithmetic.
void expand(WorkspaceSizeOp op, const Frame &frame);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_WORKSPACE_H
