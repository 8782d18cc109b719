//===- KeySplits.h - The splits of the keys of rows -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_KEYSPLITS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_KEYSPLITS_H

#include "Workspace.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The splits of the keys of rows: how many there are, which blocks compute
/// them, and their workspace, which has `rows` slots for each sequence.
class KeySplits {
public:
  KeySplits(const Frame &frame, AttentionOp op);

  /// The number of slots of the workspace.
  Value countSlots() const;
  /// The workspace of so many slots.
  Workspace getWorkspace(Value slots) const {
    return Workspace(frame, memory, slots, shape);
  }
  /// With checks, the workspace is large enough for so many slots.
  void checkWorkspace(Value slots) const {
    Workspace::check(frame, memory, slots, shape);
  }

  /// Blocks with splits are in layers of a grid: the first splits of all slots,
  /// the second splits and so on, so that blocks without work come last. A
  /// layer has one split of a slot, unless there were too many layers.
  int64_t countPerLayer() const;
  int64_t countLayers() const;
  /// Rows of a sequence that may be split.
  int64_t getRows() const { return shape.rows; }
  /// The most splits of a row.
  int64_t getMax() const { return shape.splits; }

  /// Whether a sequence of `count` rows is computed as whole rows, or else as
  /// splits. A range instead of two conditions: ptxas then sees that threads
  /// stay together, and uses uniform registers.
  Value hasRows(Value isWhole, Value count) const;
  /// Tokens of a split of `count` tokens: a multiple of a number, and at
  /// least 1.
  Value getSize(Value isWhole, Value count, int64_t multiple) const;
  /// Splits of `count` tokens, and at least 1.
  Value getCount(Value count, Value size) const;

private:
  const Frame &frame;
  Value memory, offsets;
  /// The least tokens of a split.
  int64_t leastTokens;
  WorkspaceShape shape;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_KEYSPLITS_H
