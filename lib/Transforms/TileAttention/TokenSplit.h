//===- TokenSplit.h - The split of tokens of a block ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSPLIT_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSPLIT_H

#include "TileRows.h"

namespace mlir::kvcache {

/// The split of the tokens of its rows that a block computes.
struct TokenSplit {
  /// The number of the split, the number of splits, and the tokens of one.
  Value number, count, size;

  /// Finds the split of a block whose tokens are known.
  static TokenSplit find(const TileRows &block);
  /// Restricts the tokens of the block to the split.
  void take(TileRows &block) const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSPLIT_H
