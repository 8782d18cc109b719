//===- BlockRows.h - Query rows of a block ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_BLOCKROWS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_BLOCKROWS_H

#include "../Attention/BlockTokens.h"
#include "TileGrid.h"

namespace mlir::kvcache {

/// The place of a work item's rows, before more is loaded for these.
struct RowsPlace {
  /// The rows of the sequence, without tokens.
  QueryRows sequence;
  /// The first row of the block in it.
  Value first;

  static RowsPlace find(const KernelContext &kernel, const TileWork &work);
};

/// The rows of a block, and the tokens of their sequence.
struct BlockRows {
  TileWork work;
  /// The rows of the sequence, or with sparse rows the row.
  QueryRows sequence;
  /// The first row of the block in it, and the number of the block's rows.
  Value first, count;

  static BlockRows load(const KernelContext &kernel, const TileWork &work,
                        const RowsPlace &place);

  /// Finds the tokens that the rows see.
  SeenTokens findTokens(const KernelContext &kernel) const;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_BLOCKROWS_H
