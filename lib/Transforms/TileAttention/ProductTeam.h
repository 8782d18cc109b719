//===- ProductTeam.h - The warp or warpgroup of a product -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PRODUCTTEAM_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PRODUCTTEAM_H

#include "FragmentResults.h"

namespace mlir::kvcache {

/// The warp or warpgroup that computes products of some rows of the block.
/// Teams that share rows have a share of the elements of values each.
struct ProductTeam {
  const TileRows &block;
  int64_t threads, rows;

  int64_t countColumns() const {
    return block.getSizes().valueSize / *block.getConfig().accShares;
  }
  /// The first row of the team in the block.
  Value getFirstRow() const {
    const Frame &frame = block.getFrame();
    return frame.mul(frame.div(getNumber(), *block.getConfig().accShares),
                     rows);
  }
  /// The first element of values whose accumulator the team has.
  Value getFirstColumn() const {
    const Frame &frame = block.getFrame();
    return frame.mul(frame.rem(getNumber(), *block.getConfig().accShares),
                     countColumns());
  }
  FragmentType getFragment(int64_t columns, Type element,
                           FragmentLayout layout) const {
    return FragmentType::get(element.getContext(), {rows, columns}, element,
                             layout, /*partial=*/false);
  }

private:
  Value getNumber() const {
    return block.getFrame().div(block.rows.work.thread, threads);
  }
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PRODUCTTEAM_H
