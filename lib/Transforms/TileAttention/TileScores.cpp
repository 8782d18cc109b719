//===- TileScores.cpp - Scores of the products of a tile ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScores.h"

#include "../Attention/ScoreRegions.h"
#include "../PlanAttention/TileStaging.h"

#include "mlir/IR/IRMapping.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// The least factor: with it, a score of -inf stays one.
constexpr float kLeastFactor = std::numeric_limits<float>::min();

TileScores::TileScores(const TileRows &block, FragmentBuilder &b,
                       FragmentType type, Value firstRow, Value queryFactors)
    : block(block), frame(block.getFrame()), b(b), f(frame),
      math(frame, block.getOp()), visible(frame, block.getOp()), type(type),
      firstRow(firstRow), factor(makeFactor(queryFactors)) {
  if (carriesBounds())
    carriedBounds = makeBounds();
  if (!hasBounds())
    return;
  whole = block.findTilesWithin(block.getWholeTokens());
  if (block.getOp().getMaskRegion())
    admitted = block.findTilesWithin(block.admittedForAll);
}

// Beside elements that warpgroups convert, bounds of the loop cost more: ptxas
// 13.0 no longer keeps addresses in uniform registers, and a multiprocessor has
// room for two blocks in place of three.
bool TileScores::carriesBounds() const {
  // A lane of products with swapAB has many rows.
  if (block.ids || isSwapAB(block.getConfig()))
    return false;
  if (block.getOp().getRanges() || block.getConfig().mma == MmaKind::Sync)
    return true;
  return block.getConfig().mma == MmaKind::Wgmma &&
         !*block.getConfig().rawStages &&
         !areTilesCopied(block.getOp(), block.getOp().getKeyCache());
}

bool TileScores::areProducts(const TileRows &block) {
  AttentionOp op = block.getOp();
  return !isSwapAB(block.getConfig()) && !op.getSoftCap() &&
         !op.getScoreRegion();
}

Value TileScores::getFactor(const TileRows &block, Value queryHead) {
  ScoreMath math(block.getFrame(), block.getOp());
  return math.getFactor(math.getFactor(), block.work.head, queryHead);
}

/// Query heads may have scales of their own.
Value TileScores::makeFactor(Value queryFactors) const {
  auto toExponent = [&](Value value) {
    return areProducts(block) ? f.larger(f.constant(kLeastFactor), f.abs(value))
                              : value;
  };
  FragmentType rows = type.getRowType();
  Value scale = block.getOp().getQueryScale();
  bool hasHeads = scale && isa<MemRefType>(scale.getType());
  if (!hasHeads && !queryFactors)
    return b.splat(rows, toExponent(getFactor(block, /*queryHead=*/Value())));
  Value one = math.getFactor();
  return b.map(queryFactors ? queryFactors : b.splat(rows, one),
               [&](ValueRange place) {
                 Value queryHead = block.getRow(place[1]).second;
                 Value own = math.getFactor(one, block.work.head, queryHead);
                 return toExponent(queryFactors ? f.mul(own, place[0]) : own);
               },
               {firstRow, Value()});
}

Value TileScores::apply(Value products, Value tile, Value token) const {
  Value scores = maskByRegion(modify(products, token), tile, token);
  return block.ids ? maskIds(scores, tile)
                   : maskByPosition(scores, tile, token);
}

Value TileScores::modify(Value products, Value token) const {
  if (areProducts(block))
    return products;
  FragmentOrigin origin;
  if (block.getOp().getScoreRegion())
    origin = {firstRow, token};
  return b.map(
      {products, factor},
      [&](ValueRange place) {
        Value score = math.applySoftCap(f.mul(place[0], place[1]));
        if (!origin.row)
          return score;
        Value natural = emitRegion(*block.getOp().getScoreRegion(), score,
                                   place[2], place[3]);
        return f.mul(natural, f.constant(llvm::numbers::log2e));
      },
      origin);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

bool TileScores::hasBounds() const {
  return overlaps() && areProducts(block) && !block.list &&
         !block.getOp().getWholeMask();
}

Value TileScores::isOutside(Value tile, const TokenRange &tiles,
                            bool mayBegin) const {
  Value isAfter = arith::CmpIOp::create(
      frame.builder, frame.loc, arith::CmpIPredicate::sge, tile, tiles.to);
  if (!mayBegin)
    return isAfter;
  return arith::OrIOp::create(frame.builder, frame.loc,
                              frame.less(tile, tiles.from), isAfter);
}

Value TileScores::needsMaskRegion(Value tile) const {
  if (!hasBounds())
    return block.needsMaskRegion(tile);
  return isOutside(tile, admitted, /*mayBegin=*/true);
}

Value TileScores::needsMask(Value tile) const {
  if (!hasBounds())
    return block.needsMask(tile);
  return isOutside(tile, whole, VisibleTokens::haveBegin(block.getOp()));
}

Value TileScores::selectSeen(Value isSeen, Value score) const {
  return f.select(isSeen, score,
                  f.constant(-std::numeric_limits<float>::infinity()));
}

Value TileScores::maskByRegion(Value scores, Value tile, Value token) const {
  Region *mask = block.getOp().getMaskRegion();
  if (!mask)
    return scores;
  auto maskEach = [&] {
    return b.map(scores,
                 [&](ValueRange place) {
                   return selectSeen(
                       emitRegion(*mask, /*score=*/Value(), place[1], place[2]),
                       place[0]);
                 },
                 {firstRow, token});
  };
  return frame.selectIf(needsMaskRegion(tile), maskEach,
                        [&] { return scores; });
}

Value TileScores::maskByPosition(Value scores, Value tile, Value token) const {
  auto maskEach = [&] {
    Value masked =
        b.map(withBounds(scores),
              [&](ValueRange place) {
                return selectSeen(isSeen(place.drop_front().drop_back(3),
                                         place.take_back(3), token),
                                  place[0]);
              },
              {firstRow, frame.index(0), /*hasLaneColumns=*/true});
    return block.list ? maskGaps(masked, token) : masked;
  };
  return frame.selectIf(needsMask(tile), maskEach, [&] { return scores; });
}

Value TileScores::maskIds(Value scores, Value tile) const {
  Value zero = frame.index(0);
  return b.map(scores,
               [&](ValueRange place) {
                 Value id = block.ids->get(tile, place[2], /*count=*/1);
                 return selectSeen(block.ids->isRow(id), place[0]);
               },
               {zero, zero});
}

Value TileScores::maskGaps(Value scores, Value token) const {
  auto maskGap = [&](Value number, ValueRange carried) -> SmallVector<Value> {
    return {b.map(carried,
                  [&](ValueRange place) {
                    Value i = block.getRow(place[1]).first;
                    TokenRange gap = block.ranges.getGap(
                        frame.add(block.rows.first, i), number);
                    Value own = frame.add(token, place[2]);
                    Value isSeen = arith::OrIOp::create(
                        frame.builder, frame.loc, frame.less(own, gap.from),
                        frame.less(frame.sub(gap.to, frame.index(1)), own));
                    return selectSeen(isSeen, place[0]);
                  },
                  {firstRow, frame.index(0)})};
  };
  return block.ranges.forGaps(scores, maskGap).front();
}

SmallVector<Value> TileScores::withBounds(Value scores) const {
  SmallVector<Value> operands{scores};
  llvm::append_range(operands,
                     carriedBounds.empty() ? makeBounds() : carriedBounds);
  return operands;
}

Value TileScores::isSeen(ValueRange bounds, ValueRange place,
                         Value token) const {
  Value column = frame.add(token, place[1]), number = frame.toI32(place[2]);
  Value first = frame.toI32(column);
  Value sees = frame.less(number, frame.sub(bounds[0], first));
  auto andIf = [&](Value condition) {
    sees = arith::AndIOp::create(frame.builder, frame.loc, sees, condition);
  };
  if (bounds.size() > 1)
    andIf(arith::CmpIOp::create(frame.builder, frame.loc,
                                arith::CmpIPredicate::sge, number,
                                frame.sub(bounds[1], first)));
  if (block.getOp().getMask())
    andIf(visible.isUnmasked(block.rows, block.getRow(place[0]).first,
                             frame.add(column, place[2])));
  return sees;
}

SmallVector<Value> TileScores::makeBounds() const {
  SmallVector<Value> bounds{makeBounds(&TokenRange::to)};
  if (VisibleTokens::haveBegin(block.getOp()))
    bounds.push_back(makeBounds(&TokenRange::from));
  return bounds;
}

// Numbers of tokens have 31 bits. A row before all tokens has negative bounds.
Value TileScores::makeBounds(Value TokenRange::*bound) const {
  auto rows = FragmentType::get(type.getContext(), type.getShape().front(),
                                frame.builder.getI32Type(), type.getLayout(),
                                /*partial=*/false);
  return b.map(b.splat(rows, frame.i32(0)),
               [&](ValueRange place) {
                 Value i = block.getRow(place[1]).first;
                 return frame.toI32(visible.get(block.rows, i).*bound);
               },
               {firstRow, Value()});
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

Value TileScores::emitRegion(Region &region, Value score, Value row,
                             Value token) const {
  auto [i, queryHead] = block.getRow(row);
  if (RegionAxes(region, getScoreAxes(region)).isColumnBound()) {
    // As an i32: there are instructions for its minimum.
    Value last = frame.toI32(frame.sub(block.rows.tokens, frame.index(1)));
    token = frame.fromI32(arith::MinUIOp::create(frame.builder, frame.loc,
                                                 frame.toI32(token), last));
  }
  SmallVector<Value> arguments;
  if (score)
    arguments.push_back(score);
  arguments.append({block.rows.batch, queryHead,
                    getQueryPosition(frame, block.getOp(), block.rows, i),
                    token});
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  for (Operation &op : region.front().without_terminator())
    frame.builder.clone(op, mapping);
  return mapping.lookupOrDefault(region.front().getTerminator()->getOperand(0));
}
