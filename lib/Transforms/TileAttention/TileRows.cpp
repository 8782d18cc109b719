//===- TileRows.cpp - The rows of a block, and their tokens ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileRows.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

TileRows::TileRows(const KernelContext &kernel)
    : kernel(kernel), ranges(kernel.frame, kernel.getOp()) {
  if (ranges.hasGaps())
    list.emplace(kernel.frame);
  // Those of the tile in use, of those that copies are for, and of the next.
  if (getOp().getRows())
    ids.emplace(kernel.frame, getOp(), *kernel.config.keys,
                countAhead(kernel.config) + 2, countThreads(kernel.config));
}

void TileRows::place(const BlockRows &rows, const SeenTokens &seen) {
  this->rows = rows;
  this->seen = seen;
  tokens = {rows.sequence.batch, rows.work.head, seen.all,
            seen.alignment,      seen.begin,     ids ? &*ids : nullptr};
}

std::pair<Value, Value> TileRows::getRow(Value rowOfBlock) const {
  const Frame &frame = getFrame();
  int64_t packed = kernel.shape.packed;
  Value last = frame.sub(rows.count, frame.index(1));
  Value i =
      frame.add(rows.first, frame.min(frame.div(rowOfBlock, packed), last));
  return {i, frame.add(rows.work.firstHead, frame.rem(rowOfBlock, packed))};
}

Value TileRows::findTiles(int64_t threads) {
  const Frame &frame = getFrame();
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  int64_t tileTokens = *getConfig().keys;
  Value tiles = frame.div(
      frame.add(countTokens(frame, tokens.all), frame.index(tileTokens - 1)),
      tileTokens);
  if (!list)
    return tiles;
  auto constant = [&](bool value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  };
  return list->make(
      rows.work.thread, threads, tiles, [&](Value tile) -> AdmittedPairs {
        Value from = frame.add(tokens.all.from, frame.mul(tile, tileTokens));
        TokenRange all{from, frame.add(from, frame.index(tileTokens))};
        auto loop = scf::ForOp::create(
            builder, loc, frame.index(0), rows.count, frame.index(1),
            ValueRange{constant(false), constant(true)},
            [&](OpBuilder &, Location, Value i, ValueRange before) {
              Value row =
                  frame.add(rows.sequence.first, frame.add(rows.first, i));
              AdmittedPairs seen = ranges.computePairs(row, all);
              Value any =
                  arith::OrIOp::create(builder, loc, before[0], seen.any);
              Value whole =
                  arith::AndIOp::create(builder, loc, before[1], seen.all);
              scf::YieldOp::create(builder, loc, ValueRange{any, whole});
            });
        return {loop.getResult(0), loop.getResult(1)};
      });
}

Value TileRows::getToken(Value tile) const {
  const Frame &frame = getFrame();
  if (list)
    tile = list->getTile(tile);
  return frame.add(tokens.all.from, frame.mul(tile, *getConfig().keys));
}

std::function<void()> TileRows::loadIds(Value tile) const {
  return ids->load(rows.work.thread, rows.sequence.first, rows.work.head, tile,
                   tokens.all);
}
