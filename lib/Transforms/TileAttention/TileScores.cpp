//===- TileScores.cpp - Scores of the products of a tile ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScores.h"

#include "../ExpandOps/MaskBounds.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// The least factor: with it, a score of -inf stays one.
constexpr float kLeastFactor = std::numeric_limits<float>::min();

TileScores::TileScores(TileRows &block, FragmentType type, Value firstRow)
    : block(block), frame(block.frame), b(frame.builder, frame.loc), type(type),
      firstRow(firstRow), factor(makeFactor()), to(makeEnds()) {}

bool TileScores::areProducts(AttentionOp op) {
  return !op.getSoftCap() && !op.getScoreRegion();
}

Value TileScores::getFactor(TileRows &block, Value queryHead) {
  return block.getFactor(block.getFactor(), queryHead);
}

/// Query heads may have scales of their own.
Value TileScores::makeFactor() const {
  auto toExponent = [&](Value value) {
    return areProducts(block.op)
               ? block.f.larger(block.f.constant(kLeastFactor),
                                block.f.abs(value))
               : value;
  };
  FragmentType rows = type.getRowType();
  Value scale = block.op.getQueryScale();
  if (!scale || !isa<MemRefType>(scale.getType()))
    return b.splat(rows, toExponent(getFactor(block, /*queryHead=*/Value())));
  return b.map(b.splat(rows, block.getFactor()),
               [&](ValueRange place) {
                 Value queryHead = block.getRow(place[1]).second;
                 return toExponent(block.getFactor(place[0], queryHead));
               },
               {firstRow, Value()});
}

Value TileScores::apply(Value products, Value token) const {
  return mask(modify(products, token), token);
}

Value TileScores::modify(Value products, Value token) const {
  if (areProducts(block.op))
    return products;
  FragmentOrigin origin;
  if (block.op.getScoreRegion())
    origin = {firstRow, token};
  return b.map(
      {products, factor},
      [&](ValueRange place) {
        Value score = block.bend(block.f.mul(place[0], place[1]));
        return origin.row ? applyRegion(score, place[2], place[3]) : score;
      },
      origin);
}

//===----------------------------------------------------------------------===//
// The mask
//===----------------------------------------------------------------------===//

Value TileScores::mask(Value scores, Value token) const {
  Value end = frame.add(token, frame.index(type.getColumns()));
  Value isPart = frame.less(block.seenByAll.to, end);
  if (block.op.getMask())
    isPart = arith::OrIOp::create(frame.builder, frame.loc, isPart,
                                  frame.less(block.rows.own, end));
  return frame.selectIf(
      isPart, [&] { return maskEach(scores, token); }, [&] { return scores; });
}

Value TileScores::maskEach(Value scores, Value token) const {
  Value first = frame.toI32(token);
  return b.map(
      {scores, to},
      [&](ValueRange place) {
        Value sees =
            frame.less(frame.toI32(place[3]), frame.sub(place[1], first));
        if (block.op.getMask())
          sees = arith::AndIOp::create(
              frame.builder, frame.loc, sees,
              block.isUnmasked(block.rows, block.getRow(place[2]).first,
                               frame.add(token, place[3])));
        return block.f.select(
            sees, place[0],
            block.f.constant(-std::numeric_limits<float>::infinity()));
      },
      {firstRow, frame.index(0)});
}

// Numbers of tokens have 31 bits. A row before all tokens has a negative end.
Value TileScores::makeEnds() const {
  auto rows = FragmentType::get(type.getContext(), type.getShape().front(),
                                frame.builder.getI32Type(), type.getLayout(),
                                /*partial=*/false);
  return b.map(b.splat(rows, frame.i32(0)),
               [&](ValueRange place) {
                 Value i = block.getRow(place[1]).first;
                 return frame.toI32(block.getSeen(block.rows, i).to);
               },
               {firstRow, Value()});
}

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

/// Whether an op of the region may read memory or trap. Such an op needs tokens
/// of the sequence.
static bool needsTokens(Region &region) {
  return llvm::any_of(region.front().without_terminator(),
                      [](Operation &op) { return !isPure(&op); });
}

Value TileScores::applyRegion(Value score, Value row, Value token) const {
  Region &region = *block.op.getScoreRegion();
  auto [i, queryHead] = block.getRow(row);
  if (needsTokens(region)) {
    // As an i32: there are instructions for its minimum.
    Value last = frame.toI32(frame.sub(block.rows.tokens, frame.index(1)));
    token = frame.fromI32(arith::MinUIOp::create(frame.builder, frame.loc,
                                                 frame.toI32(token), last));
  }
  IRMapping mapping;
  mapping.map(region.getArguments(),
              ArrayRef<Value>{score, block.rows.batch, queryHead,
                              getQueryPosition(frame, block.op, block.rows, i),
                              token});
  for (Operation &op : region.front().without_terminator())
    frame.builder.clone(op, mapping);
  Value natural =
      mapping.lookupOrDefault(region.front().getTerminator()->getOperand(0));
  return block.f.mul(natural, block.f.constant(llvm::numbers::log2e));
}
