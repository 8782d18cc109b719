//===- ElementScales.cpp - Scales of elements of 4 bits -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementScales.h"

#include "../Builders/Heads.h"
#include "../PlanAttention/TileStaging.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The power of two that scales are multiplied by.
constexpr float kScalePower = 128;

ElementScales::ElementScales(const TileRows &block, Value cache, int64_t size)
    : block(block), frame(block.getFrame()), cache(cache),
      groups(areElementsScaled(cache) ? countScaleGroups(cache, size) : 0),
      warps(countThreads(block.getConfig()) / kWarp) {}

bool ElementScales::arePacked() const { return isPacked(cache); }

// `fragment_mma` multiplies elements by the inverses.
float ElementScales::getInversePower() const {
  if (!arePacked())
    return 1;
  float power = isa<FloatType>(getElement()) ? 0x1p14f : 0x1p24f;
  return areNeeded() ? power / kScalePower : power;
}

Type ElementScales::getElement() const {
  return cast<CacheTypeInterface>(cache.getType()).getElementType();
}

void ElementScales::allocate() {
  // A row has at least 16 bytes.
  constexpr int64_t least = 8;
  if (areNeeded())
    scales = AllocTileOp::create(
        frame.builder, frame.loc,
        TileType::get(frame.builder.getContext(),
                      kScaledTiles * warps * *block.getConfig().keys,
                      std::max(groups, least), frame.builder.getF16Type(),
                      Swizzle::None),
        IntegerAttr());
}

PackedElements ElementScales::get(Value tile) const {
  if (!areNeeded())
    return {arePacked() ? getElement() : Type(), {}, {}};
  Value number = frame.rem(tile, kScaledTiles);
  if (warps > 1)
    number = frame.add(frame.mul(number, warps),
                       frame.div(block.rows.work.thread, kWarp));
  return {getElement(), scales, frame.mul(number, *block.getConfig().keys)};
}

VectorType ElementScales::getWords() const {
  constexpr int64_t scalesOfWord = 4;
  return VectorType::get(groups / scalesOfWord, frame.builder.getI32Type());
}

LaneTokens ElementScales::load(const TiledCache &tiles, Value tile,
                               Value firstToken, Value condition) const {
  if (!areNeeded())
    return {tile, {}};
  Value zeros = arith::ConstantOp::create(
      frame.builder, frame.loc, frame.builder.getZeroAttr(getWords()));
  return loadLaneTokens(
      block, tile, condition, zeros, [&](Value row) -> SmallVector<Value> {
        TileTokens tokens{tile, firstToken, block.tokens};
        auto [place, isRow] = tokens.getPlace(frame, tiles.getShape(), row);
        Value words = vector::BitCastOp::create(
            frame.builder, frame.loc, getWords(),
            loadStoredScales(frame, cache, place, block.tokens.head, groups));
        if (isRow)
          words = arith::SelectOp::create(frame.builder, frame.loc, isRow,
                                          words, zeros);
        return {words};
      });
}

void ElementScales::storeToken(Value words, Value row) const {
  OpBuilder &builder = frame.builder;
  Type stored = cast<CacheTypeInterface>(cache.getType()).getScale();
  Value narrow = vector::BitCastOp::create(
      builder, frame.loc, VectorType::get(groups, stored), words);
  Value wide = arith::ExtFOp::create(
      builder, frame.loc, VectorType::get(groups, builder.getF16Type()),
      narrow);
  Value power = arith::ConstantOp::create(
      builder, frame.loc,
      DenseElementsAttr::get(cast<VectorType>(wide.getType()),
                             builder.getF16FloatAttr(kScalePower)));
  wide = arith::MulFOp::create(builder, frame.loc, wide, power);
  for (int64_t number = 0; number < 2; ++number) {
    SmallVector<int64_t> order;
    for (int64_t group = number; group < groups; group += 2)
      order.push_back(group);
    Value some =
        vector::ShuffleOp::create(builder, frame.loc, wide, wide, order);
    TileStoreOp::create(builder, frame.loc, some, scales, row,
                        frame.index(number * groups / 2));
  }
}

void ElementScales::store(const LaneTokens &loaded) const {
  if (!areNeeded())
    return;
  int64_t tokens = *block.getConfig().keys;
  Value first = get(loaded.tile).row;
  for (const auto &[i, each] : llvm::enumerate(loaded.tokens)) {
    const auto &[row, words] = each;
    auto store = [&, row = row, words = words] {
      storeToken(words.front(), frame.add(first, row));
    };
    // Some lanes may have rows after the last.
    if (static_cast<int64_t>(i + 1) * kWarp <= tokens)
      store();
    else
      frame.runIf(frame.below(row, frame.index(tokens)), store);
  }
}
