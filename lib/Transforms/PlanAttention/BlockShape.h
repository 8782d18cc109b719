//===- BlockShape.h - Query rows of a block ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_BLOCKSHAPE_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_BLOCKSHAPE_H

#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The query rows of a block: some heads of a group, for some tokens.
struct BlockShape {
  /// The shape of blocks of so many rows.
  BlockShape(AttentionOp op, int64_t rows);

  /// Query heads of a token in a block, and tokens of a block.
  int64_t packed, perBlock;
  /// Shares of the heads of a group, and of all heads: blocks beside each
  /// other, which read the same pages.
  int64_t shares, across;
  /// Tiles of rows of a sequence that may be split.
  int64_t splitTiles;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_BLOCKSHAPE_H
