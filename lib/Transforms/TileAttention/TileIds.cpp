//===- TileIds.cpp - Ids of the rows of tiles -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileIds.h"

#include "../Attention/QueryRows.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Bytes of an id.
constexpr int64_t kBytes = 4;

TileIds::TileIds(const Frame &frame, AttentionOp op, int64_t tokens,
                 int64_t tiles, int64_t threads)
    : frame(frame), builder(frame.builder), loc(frame.loc), rows(op.getRows()),
      keys(op.getKeyCache()), values(op.getValues()), rope(op.getRopeCache()),
      tokens(tokens), tiles(tiles), threads(threads) {}

void TileIds::allocate() {
  auto type = TileType::get(builder.getContext(), tiles, tokens,
                            builder.getI32Type(), Swizzle::None);
  ids = AllocTileOp::create(builder, loc, type, IntegerAttr());
}

std::function<void()> TileIds::load(Value thread, Value row, Value head,
                                    Value tile,
                                    const TokenRange &columns) const {
  Value first = frame.add(columns.from, frame.mul(tile, tokens));
  Value slot = frame.rem(tile, tiles);
  SmallVector<std::pair<Value, Value>> loaded;
  for (int64_t i = 0; i < tokens; i += threads) {
    Value tileColumn = frame.add(thread, frame.index(i));
    Value column = frame.add(first, tileColumn);
    Value id = frame.selectIf(
        frame.below(column, columns.to),
        [&]() -> Value {
          Value given = memref::LoadOp::create(
              builder, loc, rows, getIdPlace(rows, row, head, column));
          check(given);
          return given;
        },
        [&] { return frame.i32(-1); });
    loaded.emplace_back(tileColumn, id);
  }
  return [this, slot, loaded] {
    for (auto [tileColumn, id] : loaded) {
      Value isInTile;
      if (tokens % threads)
        isInTile = frame.below(tileColumn, frame.index(tokens));
      runIfGiven(frame, isInTile, [&, tileColumn = tileColumn, id = id] {
        TileStoreOp::create(builder, loc, id, ids, slot, tileColumn);
      });
    }
  };
}

void TileIds::check(Value id) const {
  if (!frame.hasChecks)
    return;
  Value row = frame.fromI32(frame.max(id, frame.i32(0)));
  for (Value cache : {keys, values, rope}) {
    if (!cache)
      continue;
    Value pages = builder.createOrFold<ExtentOp>(loc, builder.getIndexType(),
                                                 Extent::Pages, cache);
    CheckOp::create(builder, loc, frame.div(row, frame.getPageSize(cache)),
                    pages, builder.getStringAttr("page of an id of 'rows'"));
  }
}

Value TileIds::getMemory(Value tile) const {
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  auto getType = [&](int64_t size, Type element) {
    return MemRefType::get({size}, element, MemRefLayoutAttrInterface(), space);
  };
  Value bytes = TileMemoryOp::create(
      builder, loc, getType(kBytes * tokens * tiles, builder.getI8Type()), ids);
  Value begin = frame.mul(frame.rem(tile, tiles), kBytes * tokens);
  Value memory = memref::ViewOp::create(builder, loc,
                                        getType(tokens, builder.getI32Type()),
                                        bytes, begin, ValueRange());
  return memref::AssumeAlignmentOp::create(builder, loc, memory, 16);
}

Value TileIds::get(Value tile, Value first, int64_t count) const {
  Type type = builder.getI32Type();
  if (count > 1)
    type = VectorType::get(count, type);
  return TileLoadOp::create(builder, loc, type, ids, frame.rem(tile, tiles),
                            first);
}

Value TileIds::isRow(Value id) const {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, id,
                               frame.i32(0));
}
