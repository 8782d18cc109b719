//===- RowBounds.cpp - Bounds of the tokens that rows see -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowBounds.h"

#include "../PlanAttention/TileSizes.h"
#include "../PlanAttention/TileStaging.h"

using namespace mlir;
using namespace mlir::kvcache;

// Beside elements that warpgroups convert, bounds of the loop cost more: ptxas
// 13.0 no longer keeps addresses in uniform registers, and a multiprocessor has
// room for two blocks in place of three.
static bool areCarried(const TileRows &block) {
  const AttentionConfig &config = block.getConfig();
  // A lane of products with swapAB has many rows.
  if (block.ids || isSwapAB(config))
    return false;
  if (block.getOp().getRanges() || config.mma == MmaKind::Sync)
    return true;
  return config.mma == MmaKind::Wgmma && !*config.rawStages &&
         !areTilesCopied(block.getOp(), block.getOp().getKeyCache());
}

// Numbers of tokens have 31 bits. A row before all tokens has negative bounds.
static Value computeBound(const TileRows &block, const FragmentBuilder &b,
                          const ScoreRows &rows, Value TokenRange::*bound) {
  const Frame &frame = block.getFrame();
  VisibleTokens visible(frame, block.getOp());
  auto type = FragmentType::get(
      rows.type.getContext(), rows.type.getShape().front(),
      frame.builder.getI32Type(), rows.type.getLayout(), /*partial=*/false);
  return b.map(b.splat(type, frame.i32(0)),
               [&](ValueRange place) {
                 Value i = block.getRow(place[1]).first;
                 return frame.toI32(visible.get(block.rows.sequence, i).*bound);
               },
               {rows.firstRow, Value()});
}

static SmallVector<Value> compute(const TileRows &block,
                                  const FragmentBuilder &b,
                                  const ScoreRows &rows) {
  SmallVector<Value> bounds{computeBound(block, b, rows, &TokenRange::to)};
  if (VisibleTokens::haveBegin(block.getOp()))
    bounds.push_back(computeBound(block, b, rows, &TokenRange::from));
  return bounds;
}

RowBounds RowBounds::create(const TileRows &block, const FragmentBuilder &b,
                            const ScoreRows &rows) {
  RowBounds bounds;
  if (areCarried(block))
    bounds.carried = compute(block, b, rows);
  return bounds;
}

SmallVector<Value> RowBounds::get(const TileRows &block,
                                  const FragmentBuilder &b,
                                  const ScoreRows &rows) const {
  return carried.empty() ? compute(block, b, rows) : carried;
}
