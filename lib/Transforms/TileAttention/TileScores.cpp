//===- TileScores.cpp - Scores of tiles -----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScores.h"

#include "../Attention/ScoreMath.h"
#include "BlockRegions.h"

using namespace mlir;
using namespace mlir::kvcache;

Value TileScores::modify(Value products, Value token) const {
  if (areScoresProducts(block))
    return products;
  DeviceMath f(block.getFrame());
  ScoreMath math(block.getFrame(), block.getOp());
  FragmentOrigin origin;
  if (block.getOp().getScoreRegion())
    origin = {rows.firstRow, token};
  return b.map(
      {products, rows.factor},
      [&](ValueRange place) {
        Value score = math.applySoftCap(f.mul(place[0], place[1]));
        if (!origin.row)
          return score;
        Value natural = emitRegion(block, *block.getOp().getScoreRegion(),
                                   score, place[2], place[3]);
        return f.mul(natural, f.constant(llvm::numbers::log2e));
      },
      origin);
}
