//===- RowPosition.h - The position of a row in its sequence ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_ROWPOSITION_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_ROWPOSITION_H

#include "../Builders/Frame.h"

namespace mlir::kvcache {

/// The operands by which a row has a position.
struct PositionOperands {
  Value cache, rowOffsets;
  /// Tokens of each sequence before the step, or null for the cache's lengths.
  Value lengths;
};

/// The sequence of a row, the number of tokens up to the row's own, and that
/// before the step.
struct RowPosition {
  Value sequence, visible, length;

  /// Finds the position of a row that is no padding.
  static RowPosition find(const Frame &frame, const PositionOperands &operands,
                          Value row);
  /// Likewise, of a row of a sequence.
  static RowPosition find(const Frame &frame, const PositionOperands &operands,
                          Value row, Value sequence);
};

/// With checks, rows of scores have as many columns as the row uses.
void checkColumns(const Frame &frame, Value scores, Value used);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_ROWPOSITION_H
