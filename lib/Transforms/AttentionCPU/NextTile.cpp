//===- NextTile.cpp - Prefetches of the next tile -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NextTile.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

NextTile::NextTile(const HostAttention &attention, const FewRowsMemory &memory,
                   const RowGroup &group, const HeadTile &tile, int64_t columns)
    : attention(attention), frame(attention.frame), memory(memory),
      group(group), tile(tile), columns(columns),
      columnsForKeys(llvm::divideCeil(columns, 2)) {}

Place NextTile::getPlace(Value j, const Place &current) const {
  OpBuilder &builder = frame.builder;
  Value size = frame.index(kTileTokens);
  Value distance = arith::SelectOp::create(builder, frame.loc, group.isFirst,
                                           size, frame.index(0));
  Value first = frame.add(tile.first, distance);
  if (!memory.ids && havePagesOfTiles(attention.op)) {
    Value lastTile = frame.mul(frame.div(tile.last, size), size);
    Value token = frame.add(frame.min(first, lastTile), j);
    return attention.loader.getPlace(group.rows, token, Value());
  }
  Value token = getNearest(frame, tile, frame.add(first, j));
  if (!memory.ids)
    return attention.loader.getPlace(group.rows, token, Value());
  Value id = attention.loader.loadId(group.rows, tile.head, token);
  Value isToken = frame.less(frame.index(-1), id);
  Place next = attention.loader.getPlace(group.rows, token, id);
  auto select = [&](Value ifToken, Value otherwise) -> Value {
    return arith::SelectOp::create(builder, frame.loc, isToken, ifToken,
                                   otherwise);
  };
  return {next.batch, select(next.token, current.token),
          select(next.page, current.page)};
}

NextTile::Rows NextTile::start(const TileColumns &all, bool isForKeys,
                               ArrayRef<const HeadField *> fields) const {
  const HeadField &first = *fields.front();
  Rows next{{}, first.size, first.pieces.getWidth()};
  for (auto [j, current] : llvm::enumerate(all.places)) {
    bool isKeys = static_cast<int64_t>(j) % columns < columnsForKeys;
    if (isKeys != isForKeys)
      continue;
    Place place = getPlace(frame.add(all.first, frame.index(j)), current);
    for (const HeadField *field : fields) {
      Value row =
          getStoredRow(frame, field->cache, place, tile.head, field->size);
      if (!row)
        continue;
      auto type = cast<MemRefType>(row.getType());
      bool isAlike = next.rows.empty() || next.rows[0].getType() == type;
      if (isAlike && type.getDimSize(1) == first.size &&
          next.width >= countInLine(type))
        next.rows.push_back(row);
      else
        prefetchLines(frame, row, frame.index(0), type.getDimSize(1));
    }
  }
  return next;
}

NextTile::Rows NextTile::startWithKeys(const HeadField &field,
                                       const TileColumns &all) const {
  SmallVector<const HeadField *> fields = {&field};
  if (attention.op.getValueCache() && &field == memory.keys.begin())
    fields.push_back(&memory.values);
  return start(all, /*isForKeys=*/true, fields);
}

NextTile::Rows NextTile::startWithValues(const TileColumns &all) const {
  SmallVector<const HeadField *> fields = {&memory.values};
  // Values may be elements of keys.
  if (!attention.op.getValueCache())
    fields.clear();
  for (const HeadField &field : memory.keys)
    fields.push_back(&field);
  return start(all, /*isForKeys=*/false, fields);
}

void NextTile::prefetchPiece(const Rows &next, Value d) const {
  int64_t count = next.rows.size();
  int64_t parts = std::gcd(next.size / next.width, count);
  if (count == 0)
    return;
  Value part = frame.div(d, next.size / parts);
  Value first = frame.mul(frame.rem(d, frame.index(next.size / parts)), parts);
  for (int64_t i = 0; i < count / parts; ++i) {
    Value row = next.rows[i];
    for (int64_t other = 1; other < parts; ++other)
      row = arith::SelectOp::create(frame.builder, frame.loc,
                                    frame.below(part, frame.index(other)), row,
                                    next.rows[other * count / parts + i]);
    prefetchLines(frame, row, first, next.width * parts);
  }
}
