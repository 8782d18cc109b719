//===- TileMask.cpp - Tokens that rows do not see -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileMask.h"

#include "../Builders/DeviceMath.h"
#include "BlockRegions.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

static Value selectSeen(const Frame &frame, Value isSeen, Value score) {
  DeviceMath f(frame);
  return f.select(isSeen, score,
                  f.constant(-std::numeric_limits<float>::infinity()));
}

Value TileMask::apply(Value scores, Value tile, Value token) const {
  Value seen = applyRegion(scores, tile, token);
  return block.ids ? applyIds(seen, tile) : applyPositions(seen, tile, token);
}

Value TileMask::applyRegion(Value scores, Value tile, Value token) const {
  Region *mask = block.getOp().getMaskRegion();
  if (!mask)
    return scores;
  auto maskEach = [&] {
    return b.map(scores,
                 [&](ValueRange place) {
                   return selectSeen(frame,
                                     emitRegion(block, *mask, /*score=*/Value(),
                                                place[1], place[2]),
                                     place[0]);
                 },
                 {rows.firstRow, token});
  };
  return frame.selectIf(partial.needMaskRegion(tile), maskEach,
                        [&] { return scores; });
}

Value TileMask::applyPositions(Value scores, Value tile, Value token) const {
  auto maskEach = [&] {
    SmallVector<Value> operands{scores};
    llvm::append_range(operands, bounds.get(block, b, rows));
    Value masked =
        b.map(operands,
              [&](ValueRange place) {
                return selectSeen(frame,
                                  isSeen(place.drop_front().drop_back(3),
                                         place.take_back(3), token),
                                  place[0]);
              },
              {rows.firstRow, frame.index(0), /*hasLaneColumns=*/true});
    return block.list ? applyGaps(masked, token) : masked;
  };
  return frame.selectIf(partial.needMask(tile), maskEach,
                        [&] { return scores; });
}

Value TileMask::applyIds(Value scores, Value tile) const {
  Value zero = frame.index(0);
  return b.map(scores,
               [&](ValueRange place) {
                 Value id = block.ids->get(tile, place[2], /*count=*/1);
                 return selectSeen(frame, block.ids->isRow(id), place[0]);
               },
               {zero, zero});
}

Value TileMask::applyGaps(Value scores, Value token) const {
  auto maskGap = [&](Value number, ValueRange carried) -> SmallVector<Value> {
    return {b.map(carried,
                  [&](ValueRange place) {
                    Value i = block.getRow(place[1]).first;
                    TokenRange gap = block.ranges.getGap(
                        frame.add(block.rows.sequence.first, i), number);
                    Value own = frame.add(token, place[2]);
                    Value isSeen = arith::OrIOp::create(
                        frame.builder, frame.loc, frame.less(own, gap.from),
                        frame.less(frame.sub(gap.to, frame.index(1)), own));
                    return selectSeen(frame, isSeen, place[0]);
                  },
                  {rows.firstRow, frame.index(0)})};
  };
  return block.ranges.forGaps(scores, maskGap).front();
}

Value TileMask::isSeen(ValueRange rowBounds, ValueRange place,
                       Value token) const {
  Value column = frame.add(token, place[1]), number = frame.toI32(place[2]);
  Value first = frame.toI32(column);
  Value sees = frame.less(number, frame.sub(rowBounds[0], first));
  auto andIf = [&](Value condition) {
    sees = arith::AndIOp::create(frame.builder, frame.loc, sees, condition);
  };
  if (rowBounds.size() > 1)
    andIf(arith::CmpIOp::create(frame.builder, frame.loc,
                                arith::CmpIPredicate::sge, number,
                                frame.sub(rowBounds[1], first)));
  if (block.getOp().getMask())
    andIf(VisibleTokens(frame, block.getOp())
              .isUnmasked(block.rows.sequence, block.getRow(place[0]).first,
                          frame.add(column, place[2])));
  return sees;
}
