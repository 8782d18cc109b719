//===- Slots.cpp - Tiles of the slots of a pipe ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The bytes from the tile of a slot to that of the next, which has the same
/// alignment.
static int64_t getStride(TileType tile) {
  tma::TileLayout layout = tile.getLayout();
  return llvm::alignTo(layout.getBytes(), layout.getAlignment());
}

Slots::Slots(PipeOp pipe) : type(pipe.getPipe().getType()) {
  OpBuilder builder(pipe);
  for (Type each : type.getTiles()) {
    auto tile = cast<TileType>(each);
    constexpr int64_t columns = 16;
    auto all = TileType::get(builder.getContext(),
                             type.getStages() * getStride(tile) / columns,
                             columns, builder.getI8Type(), Swizzle::None);
    auto alloc = AllocTileOp::create(
        builder, pipe.getLoc(), all,
        builder.getI64IntegerAttr(tile.getLayout().getAlignment()));
    memory.push_back(TileMemoryOp::create(builder, pipe.getLoc(),
                                          all.getMemoryType(), alloc));
  }
}

SmallVector<Value> Slots::getTiles(const IndexBuilder &b, Value slot) const {
  SmallVector<Value> tiles;
  for (auto [each, memory] : llvm::zip(type.getTiles(), memory)) {
    auto tile = cast<TileType>(each);
    Value offset = b.mul(slot, b.index(getStride(tile)));
    Value bytes =
        memref::ViewOp::create(b.builder, b.loc, tile.getMemoryType(), memory,
                               offset, /*sizes=*/ValueRange());
    tiles.push_back(TileViewOp::create(b.builder, b.loc, tile, bytes));
  }
  return tiles;
}
