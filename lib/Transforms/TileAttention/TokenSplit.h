//===- TokenSplit.h - The split of tokens of a block ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSPLIT_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSPLIT_H

#include "../Attention/BlockTokens.h"
#include "TileGrid.h"

namespace mlir::kvcache {

/// The split of the tokens of its rows that a block computes.
struct TokenSplit {
  /// The number of the split, the number of splits, and the tokens of one.
  Value number, count, size;

  /// Finds the split of a block whose rows see these tokens.
  static TokenSplit find(const KernelContext &kernel, const TileWork &work,
                         const SeenTokens &seen);
  /// The tokens of the split.
  SeenTokens restrict(const Frame &frame, const SeenTokens &seen) const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TOKENSPLIT_H
