//===- ScoreRows.cpp - Rows of a fragment of scores -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreRows.h"

#include "../Attention/ScoreMath.h"
#include "../PlanAttention/TileSizes.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// The least factor: with it, a score of -inf stays one.
constexpr float kLeastFactor = std::numeric_limits<float>::min();

bool kvcache::areScoresProducts(const TileRows &block) {
  AttentionOp op = block.getOp();
  return !isSwapAB(block.getConfig()) && !op.getSoftCap() &&
         !op.getScoreRegion();
}

Value kvcache::getHeadFactor(const TileRows &block, Value queryHead) {
  ScoreMath math(block.getFrame(), block.getOp());
  return math.getFactor(math.getFactor(), block.rows.work.head, queryHead);
}

// Query heads may have scales of their own.
ScoreRows ScoreRows::create(const TileRows &block, const FragmentBuilder &b,
                            FragmentType type, Value firstRow,
                            Value queryFactors) {
  DeviceMath f(block.getFrame());
  ScoreMath math(block.getFrame(), block.getOp());
  auto toExponent = [&](Value value) {
    return areScoresProducts(block)
               ? f.larger(f.constant(kLeastFactor), f.abs(value))
               : value;
  };
  FragmentType rows = type.getRowType();
  Value scale = block.getOp().getQueryScale();
  bool hasHeads = scale && isa<MemRefType>(scale.getType());
  if (!hasHeads && !queryFactors)
    return {
        type, firstRow,
        b.splat(rows, toExponent(getHeadFactor(block, /*queryHead=*/Value())))};
  Value one = math.getFactor();
  Value factor =
      b.map(queryFactors ? queryFactors : b.splat(rows, one),
            [&](ValueRange place) {
              Value queryHead = block.getRow(place[1]).second;
              Value own = math.getFactor(one, block.rows.work.head, queryHead);
              return toExponent(queryFactors ? f.mul(own, place[0]) : own);
            },
            {firstRow, Value()});
  return {type, firstRow, factor};
}
