//===- TileGrid.cpp - Which rows a block of tiles computes ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileGrid.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

TileGrid::TileGrid(AttentionOp op, const Frame &frame, int64_t blockRows)
    : AttentionBase(op, frame), packed(getDivisorUpTo(group, blockRows)),
      // A sparse row sees tokens of its own.
      perBlock(op.getRows() ? 1 : blockRows / packed),
      splitTiles(llvm::divideCeil(op.getSplitRows(), perBlock)) {}

Value TileGrid::countBlocks() {
  batch = frame.sub(frame.dim(op.getRowOffsets(), 0), frame.index(1));
  // The tiles of a sequence begin at `first row / perBlock + its number`.
  Value whole = frame.div(frame.dim(op.getQ(), 0), perBlock);
  units = frame.add(frame.mul(whole, frame.min(batch, frame.index(1))), batch);
  if (!op.getWorkspace())
    return units;
  makeWorkspace();
  splitUnits = frame.mul(batch, splitTiles * countPartsOfLayer());
  return frame.max(units, splitUnits);
}

void TileGrid::forTiles(int64_t threads,
                        function_ref<void(const TileWork &)> body) {
  int64_t shares = group / packed, across = heads * shares;
  Value blocks = countBlocks();
  Value layers = frame.index(workspace ? 1 + countLayersOfParts() : 1);
  frame.forBlocks(
      {frame.mul(blocks, across), layers}, {1, 1},
      [&](ValueRange block) {
        frame.forThreads({threads}, [&](ValueRange ids) {
          thread = ids[0];
          Value share = frame.rem(block[0], across);
          head = frame.div(share, shares);
          firstHead = frame.add(frame.mul(head, group),
                                frame.mul(frame.rem(share, shares), packed));
          Value number = frame.div(block[0], across);
          // The last rows of a causal prompt see most, and begin first.
          Value unit = frame.sub(frame.sub(units, frame.index(1)), number);
          body(workspace ? getWork(number, block[1], unit)
                         : getWholeRows(unit));
        });
      },
      /*alongX=*/0);
}

Value TileGrid::getFirstUnit(Value sequence) {
  Value first = frame.loadNumber(op.getRowOffsets(), sequence);
  return frame.add(frame.div(first, perBlock), sequence);
}

TileWork TileGrid::getWholeRows(Value unit) {
  Value sequence = frame.findLast(batch, [&](Value candidate) {
    return frame.below(unit, getFirstUnit(candidate));
  });
  return {sequence, frame.sub(unit, getFirstUnit(sequence)), Value(), Value(),
          Value()};
}

TileWork TileGrid::getWork(Value number, Value layer, Value unit) {
  TileWork work;
  work.isWhole = frame.equal(layer, frame.index(0));
  int64_t parts = countPartsOfLayer();
  work.part = frame.add(frame.mul(frame.sub(layer, frame.index(1)), parts),
                        frame.rem(number, parts));
  Value isReal =
      frame.below(number, arith::SelectOp::create(builder, loc, work.isWhole,
                                                  units, splitUnits));
  Value tile = frame.div(number, parts);
  Value sequence = frame.div(tile, splitTiles);
  work.slot =
      op.getRows() ? tile : frame.mul(sequence, int64_t(op.getSplitRows()));
  auto findWhole = [&]() -> Pair {
    TileWork whole = getWholeRows(unit);
    return {whole.sequence, whole.number};
  };
  auto findSplit = [&]() -> Pair {
    return {sequence, frame.rem(tile, splitTiles)};
  };
  std::tie(work.sequence, work.number) = selectPair(
      isReal, [&] { return selectPair(work.isWhole, findWhole, findSplit); },
      // No sequence has as many rows.
      [&]() -> Pair { return {frame.index(0), frame.index(1u << 31)}; });
  return work;
}
