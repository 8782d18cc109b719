//===- QueryTile.cpp - The queries of a block on tensor cores -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTile.h"
#include "AttentionChoices.h"
#include "kvcache/IR/TileOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Elements of 16 bits that a thread stores into the tile at once.
constexpr int64_t kStored = 8;
/// Elements of a query up to which a warp keeps its rows in registers.
constexpr int64_t kMostKept = 128;

QueryTile::QueryTile(const Frame &frame, const JoinedRows &queries,
                     FloatType lane, int64_t rows, int64_t size)
    : frame(frame), builder(frame.builder), loc(frame.loc), queries(queries),
      lane(lane), rows(rows), size(size) {}

void QueryTile::allocate() {
  tile = AllocTileOp::create(
      builder, loc, TensorCores::getTile(lane, rows, size), IntegerAttr());
}

void QueryTile::store(
    Value thread, int64_t threads,
    function_ref<std::pair<Value, Value>(Value ofTile)> getRow) const {
  int64_t units = size / kStored;
  frame.loop(thread, frame.index(rows * units), frame.index(threads),
             [&](Value unit) {
               Value ofTile = frame.div(unit, units);
               Value d = frame.mul(frame.rem(unit, units), kStored);
               auto [row, head] = getRow(ofTile);
               Value q = loadJoined(frame, queries, {row, head}, d, kStored);
               TileStoreOp::create(builder, loc, convertLanes(frame, q, lane),
                                   tile, ofTile, d);
             });
}

void QueryTile::keep(const TensorCores &cores, Value firstRow) {
  kept.clear();
  if (size <= kMostKept)
    for (int64_t d = 0; d < size; d += 16)
      kept.push_back(cores.load(tile, firstRow, frame.index(d), false));
}

Fragment QueryTile::get(const TensorCores &cores, Value firstRow,
                        int64_t d) const {
  return kept.empty() ? cores.load(tile, firstRow, frame.index(d), false)
                      : kept[d / 16];
}
