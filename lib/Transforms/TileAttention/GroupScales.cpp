//===- GroupScales.cpp - Scales of groups of elements of tiles ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupScales.h"

#include "../Builders/DeviceMath.h"
#include "../PlanAttention/TileSizes.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

GroupScales::GroupScales(const Frame &frame, Value cache, int64_t size,
                         int64_t tokens, int64_t threads)
    : frame(frame), builder(frame.builder), loc(frame.loc), cache(cache),
      groups(countScaleGroups(cache, size)), tokens(tokens), threads(threads) {}

void GroupScales::allocate() {
  if (groups)
    scales = AllocTileOp::create(
        builder, loc,
        TileType::get(builder.getContext(), kScaledTiles * groups, tokens,
                      builder.getF32Type(), Swizzle::None),
        IntegerAttr());
}

Value GroupScales::getRow(Value tile, Value group) const {
  return frame.add(frame.mul(frame.rem(tile, kScaledTiles), groups), group);
}

std::function<void()> GroupScales::load(
    Value thread, Value head, Value tile,
    function_ref<std::pair<Place, Value>(Value row)> getPlace) const {
  SmallVector<std::pair<Value, SmallVector<Value>>> loaded;
  Value zero = groups ? DeviceMath(frame).constant(0) : Value();
  for (int64_t i = 0; groups && i < tokens; i += threads) {
    Value row = frame.add(thread, frame.index(i));
    auto load = [&] {
      auto [place, isRow] = getPlace(row);
      SmallVector<Value> found = loadScales(frame, cache, place, head, groups);
      for (Value &scale : found)
        if (isRow)
          scale = arith::SelectOp::create(builder, loc, isRow, scale, zero);
      return found;
    };
    auto branch = scf::IfOp::create(
        builder, loc, frame.below(row, frame.index(tokens)),
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, loc, load());
        },
        [&](OpBuilder &, Location) {
          scf::YieldOp::create(builder, loc, SmallVector<Value>(groups, zero));
        });
    loaded.emplace_back(row, SmallVector<Value>(branch.getResults()));
  }
  return [this, loaded, tile] {
    for (const auto &[row, found] : loaded)
      frame.runIf(frame.below(row, frame.index(tokens)), [&, row = row,
                                                          &found = found] {
        for (auto [group, scale] : llvm::enumerate(found))
          TileStoreOp::create(builder, loc, scale, scales,
                              getRow(tile, frame.index(int64_t(group))), row);
      });
  };
}

Value GroupScales::get(Value tile, Value row, Value d) const {
  if (!groups)
    return DeviceMath(frame).constant(1);
  int64_t size = cast<CacheTypeInterface>(cache.getType()).getGranularity();
  return TileLoadOp::create(builder, loc, builder.getF32Type(), scales,
                            getRow(tile, frame.div(d, size)), row);
}
