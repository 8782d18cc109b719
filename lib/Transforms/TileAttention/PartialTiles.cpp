//===- PartialTiles.cpp - Tiles that rows see in part ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartialTiles.h"

#include "ScoreRows.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Whether tiles are compared with bounds from outside of the loop. Not for
/// soft caps and regions `score`, whose code is too large for ptxas to overlap
/// it twice.
static bool haveBounds(const TileRows &block) {
  return hasProducers(block.getConfig()) && areScoresProducts(block) &&
         !block.list && !block.getOp().getWholeMask();
}

/// The tokens that all rows see by positions, ranges and the mask, unless there
/// are gaps or bits of all tokens.
static TokenRange getWholeTokens(const TileRows &block) {
  TokenRange whole = block.seen.byAll;
  if (block.getOp().getMask())
    whole.to = block.getFrame().min(whole.to, block.rows.sequence.own);
  return whole;
}

/// Tiles [from, to) that have only tokens of a range.
static TokenRange findTilesWithin(const TileRows &block,
                                  const TokenRange &range) {
  const Frame &frame = block.getFrame();
  int64_t tileTokens = *block.getConfig().keys;
  auto count = [&](Value end, int64_t more) {
    Value within =
        frame.max(frame.sub(end, block.tokens.all.from), frame.index(0));
    return frame.div(frame.add(within, frame.index(more)), tileTokens);
  };
  return {count(range.from, tileTokens - 1), count(range.to, 0)};
}

PartialTiles PartialTiles::create(const TileRows &block) {
  PartialTiles tiles(block);
  if (!haveBounds(block))
    return tiles;
  tiles.whole = findTilesWithin(block, getWholeTokens(block));
  if (block.getOp().getMaskRegion())
    tiles.admitted = findTilesWithin(block, block.seen.admitted);
  return tiles;
}

/// Whether a tile is not one of some tiles, which begin at 0 unless `mayBegin`.
static Value isOutside(const Frame &frame, Value tile, const TokenRange &tiles,
                       bool mayBegin) {
  Value isAfter = arith::CmpIOp::create(
      frame.builder, frame.loc, arith::CmpIPredicate::sge, tile, tiles.to);
  if (!mayBegin)
    return isAfter;
  return arith::OrIOp::create(frame.builder, frame.loc,
                              frame.less(tile, tiles.from), isAfter);
}

Value PartialTiles::needMaskRegion(Value tile) const {
  const Frame &frame = block.getFrame();
  if (admitted.to)
    return isOutside(frame, tile, admitted, /*mayBegin=*/true);
  Value token = block.getToken(tile);
  Value end = frame.add(token, frame.index(*block.getConfig().keys));
  return arith::OrIOp::create(frame.builder, frame.loc,
                              frame.less(token, block.seen.admitted.from),
                              frame.less(block.seen.admitted.to, end));
}

Value PartialTiles::needMask(Value tile) const {
  const Frame &frame = block.getFrame();
  AttentionOp op = block.getOp();
  if (whole.to)
    return isOutside(frame, tile, whole, VisibleTokens::haveBegin(op));
  if (op.getWholeMask())
    return arith::ConstantOp::create(frame.builder, frame.loc,
                                     frame.builder.getBoolAttr(true));
  Value token = block.getToken(tile);
  Value end = frame.add(token, frame.index(*block.getConfig().keys));
  Value isPart = frame.less(block.seen.byAll.to, end);
  auto orIf = [&](Value condition) {
    isPart = arith::OrIOp::create(frame.builder, frame.loc, isPart, condition);
  };
  if (VisibleTokens::haveBegin(op))
    orIf(frame.less(token, block.seen.byAll.from));
  if (op.getMask())
    orIf(frame.less(block.rows.sequence.own, end));
  if (block.list)
    orIf(block.list->isPart(tile));
  return isPart;
}
