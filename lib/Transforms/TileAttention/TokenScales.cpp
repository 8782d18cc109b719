//===- TokenScales.cpp - Scales of the tokens of raw tiles ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenScales.h"

#include "../Builders/DeviceMath.h"
#include "../Builders/Heads.h"
#include "../PlanAttention/TileStaging.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Tiles whose scales there are at a time.
constexpr int64_t kScaledTiles = 2;
/// The exponents of f32, as they are stored: their place, of 2^0, and of the
/// powers of two that scales are rounded down to.
constexpr int64_t kPlace = 23, kZero = 127, kLeast = 1, kMost = 252;

/// The groups whose tokens have such numbers.
static int64_t countGroups(Value cache, int64_t size, GroupNumbers kind) {
  bool hasNumbers = kind == GroupNumbers::Scales ||
                    cast<CacheTypeInterface>(cache.getType()).hasZeroPoints();
  return hasNumbers ? countProductGroups(cache, size) : 0;
}

TokenScales::TokenScales(const TileRows &block, Value cache, int64_t size,
                         GroupNumbers kind)
    : block(block), frame(block.getFrame()), cache(cache), kind(kind),
      groups(::countGroups(cache, size, kind)),
      warps(countThreads(block.getConfig()) / kWarp) {}

void TokenScales::allocate() {
  if (groups)
    scales = AllocTileOp::create(
        frame.builder, frame.loc,
        TileType::get(frame.builder.getContext(), kScaledTiles * warps * groups,
                      *block.getConfig().keys, frame.builder.getF32Type(),
                      Swizzle::None),
        IntegerAttr());
}

Value TokenScales::getRow(Value tile, int64_t group) const {
  Value warp =
      warps > 1 ? frame.div(block.rows.work.thread, kWarp) : frame.index(0);
  Value tileOfWarp =
      frame.add(frame.mul(frame.rem(tile, kScaledTiles), warps), warp);
  return frame.add(frame.mul(tileOfWarp, groups), frame.index(group));
}

Value TokenScales::loadFragment(const FragmentBuilder &b, FragmentType type,
                                Value tile, int64_t group) const {
  return b.load(type, scales, getRow(tile, group), frame.index(0),
                LoadForm::Repeated);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

SmallVector<Value> TokenScales::loadToken(const TiledCache &tiles, Value tile,
                                          Value firstToken, Value row) const {
  DeviceMath f(frame);
  TileTokens tokens{tile, firstToken, block.tokens};
  auto [place, isRow] = tokens.getPlace(frame, tiles.getShape(), row);
  SmallVector<Value> loaded =
      loadScales(frame, cache, place, block.tokens.head, groups,
                 kind == GroupNumbers::ZeroPoints);
  for (Value &scale : loaded)
    if (isRow)
      scale = f.select(isRow, scale, f.constant(0));
  return loaded;
}

LaneTokens
kvcache::loadLaneTokens(const TileRows &block, Value tile, Value condition,
                        ValueRange zeros,
                        function_ref<SmallVector<Value>(Value row)> load) {
  const Frame &frame = block.getFrame();
  LaneTokens loaded{tile, {}};
  Value lane = frame.rem(block.rows.work.thread, kWarp);
  for (int64_t i = 0; i < *block.getConfig().keys; i += kWarp) {
    Value row = frame.add(lane, frame.index(i));
    auto yield = [&](ValueRange values) {
      scf::YieldOp::create(frame.builder, frame.loc, values);
    };
    if (!condition) {
      loaded.tokens.emplace_back(row, load(row));
      continue;
    }
    auto branch = scf::IfOp::create(
        frame.builder, frame.loc, condition,
        [&](OpBuilder &, Location) { yield(load(row)); },
        [&](OpBuilder &, Location) { yield(zeros); });
    loaded.tokens.emplace_back(row, SmallVector<Value>(branch.getResults()));
  }
  return loaded;
}

TokenScales::Loaded TokenScales::load(const TiledCache &tiles, Value tile,
                                      Value firstToken, Value condition) const {
  if (!groups)
    return {tile, {}};
  SmallVector<Value> zeros(groups, DeviceMath(frame).constant(0));
  return loadLaneTokens(block, tile, condition, zeros, [&](Value row) {
    return loadToken(tiles, tile, firstToken, row);
  });
}

void TokenScales::store(const Loaded &loaded, ValueRange factors) const {
  DeviceMath f(frame);
  int64_t tokens = *block.getConfig().keys;
  for (int64_t group = 0; group < groups; ++group)
    for (const auto &[i, row] : llvm::enumerate(loaded.tokens)) {
      const auto &[token, all] = row;
      Value scale = all[group];
      if (!factors.empty())
        scale = f.mul(scale, factors[group]);
      auto storeScale = [&, column = token] {
        TileStoreOp::create(frame.builder, frame.loc, scale, scales,
                            getRow(loaded.tile, group), column);
      };
      // Some lanes may have rows after the last.
      if (static_cast<int64_t>(i + 1) * kWarp <= tokens)
        storeScale();
      else
        frame.runIf(frame.below(token, frame.index(tokens)), storeScale);
    }
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

Value ScalePowers::toBits(Value number) const {
  return arith::BitcastOp::create(frame.builder, frame.loc,
                                  frame.builder.getI32Type(), number);
}

Value ScalePowers::toFloat(Value bits) const {
  return arith::BitcastOp::create(frame.builder, frame.loc,
                                  frame.builder.getF32Type(), bits);
}

Value ScalePowers::divide(int64_t exponents, Value bits) const {
  return frame.sub(frame.i32(exponents << kPlace), bits);
}

// Twice the largest power of two is the inverse of the smallest one.
Value ScalePowers::getFirst() const {
  return toFloat(divide(2 * kZero - 1, frame.i32(kLeast << kPlace)));
}

Value ScalePowers::invert(Value power) const {
  return toFloat(divide(2 * kZero, toBits(power)));
}

Value ScalePowers::include(Value power, const TokenScales::Loaded &loaded,
                           int64_t group) const {
  Value most = frame.i32(0), mask = frame.i32(0xFF << kPlace);
  for (const auto &[token, scales] : loaded.tokens)
    most = frame.max(most, arith::AndIOp::create(frame.builder, frame.loc,
                                                 toBits(scales[group]), mask));
  most = NVVM::ReduxOp::create(frame.builder, frame.loc, most.getType(), most,
                               NVVM::ReduxKind::UMAX, frame.i32(-1));
  most = frame.min(frame.max(most, frame.i32(kLeast << kPlace)),
                   frame.i32(kMost << kPlace));
  return toFloat(frame.min(toBits(power), divide(2 * kZero - 1, most)));
}
