//===- HintChoice.cpp - Hints of reads of caches --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HintChoice.h"

using namespace mlir;
using namespace mlir::kvcache;

// Splits of a sequence are read once if a block has all of its rows that are
// split, for all heads of a group. The blocks of a prompt read the same tokens,
// and sparse rows may name them as well.
Eviction kvcache::chooseHint(AttentionOp op, const AttentionShape &shape,
                             int64_t rows) {
  if (shape.config.l2Hint)
    return *shape.config.l2Hint;
  int64_t sequenceRows =
      shape.heads * static_cast<int64_t>(op.getSplitOrDefault().getRows());
  bool isReadOnce =
      shape.tokens == Tokens::SequenceInSplits && sequenceRows <= rows;
  return isReadOnce ? kOfStreams : Eviction::Normal;
}
