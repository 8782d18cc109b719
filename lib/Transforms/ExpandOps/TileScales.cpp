//===- TileScales.cpp - Scales of the tokens of raw tiles -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileScales.h"
#include "DeviceMath.h"
#include "Heads.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Tiles whose scales there are at a time.
constexpr int64_t kTiles = 2;
/// The exponents of f32, as they are stored: their place, of 2^0, and of the
/// powers of two that scales are rounded down to.
constexpr int64_t kPlace = 23, kZero = 127, kLeast = 1, kMost = 252;

TileScales::TileScales(const Frame &frame, Value cache, int64_t size,
                       const TilePlan &plan, bool hasUnits)
    : frame(frame), builder(frame.builder), loc(frame.loc), cache(cache),
      groups(plan.multipliesRaw ? countScaleGroups(cache, size) : 0),
      tokensOfTile(plan.tokens), warps(plan.countThreads() / kWarp),
      hasUnits(hasUnits) {}

void TileScales::allocate() {
  if (groups)
    scales = AllocTileOp::create(
        builder, loc,
        TileType::get(builder.getContext(), kTiles * warps * groups,
                      tokensOfTile, builder.getF32Type(), Swizzle::None),
        IntegerAttr());
}

Value TileScales::getRow(Value thread, Value tile, int64_t group) const {
  Value ofWarp =
      frame.add(frame.mul(frame.rem(tile, kTiles), warps),
                warps > 1 ? frame.div(thread, kWarp) : frame.index(0));
  return frame.add(frame.mul(ofWarp, groups), frame.index(group));
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

Value TileScales::toBits(Value number) const {
  return arith::BitcastOp::create(builder, loc, builder.getI32Type(), number);
}

Value TileScales::toFloat(Value bits) const {
  return arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
}

Value TileScales::divide(int64_t exponents, Value bits) const {
  return frame.sub(frame.i32(exponents << kPlace), bits);
}

// Twice the largest power of two is the inverse of the smallest unit.
SmallVector<Value> TileScales::getFirstUnits() const {
  SmallVector<Value> units(
      countUnits(),
      toFloat(divide(2 * kZero - 1, frame.i32(kLeast << kPlace))));
  units.append(countUnits(), DeviceMath(frame).constant(1));
  return units;
}

Value TileScales::invert(Value unit) const {
  return toFloat(divide(2 * kZero, toBits(unit)));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

SmallVector<Value>
TileScales::loadIf(Value condition,
                   function_ref<SmallVector<Value>()> load) const {
  SmallVector<Value> zeros(groups, DeviceMath(frame).constant(0));
  auto branch = scf::IfOp::create(
      builder, loc, condition,
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, load());
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, zeros);
      });
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> TileScales::loadToken(const TiledCache &tiles, Value tile,
                                         Value token, const TiledTokens &tokens,
                                         Value row) const {
  DeviceMath f(frame);
  auto [place, isRow] = tiles.getPlace(tile, token, tokens, row);
  SmallVector<Value> loaded =
      loadScales(frame, cache, place, tokens.head, groups);
  for (Value &scale : loaded)
    if (isRow)
      scale = f.select(isRow, scale, f.constant(0));
  return loaded;
}

std::function<void(MutableArrayRef<Value>)>
TileScales::load(Value thread, const TiledCache &tiles, Value tile, Value token,
                 const TiledTokens &tokens, Value condition) const {
  if (!groups)
    return [](MutableArrayRef<Value>) {};
  Value lane = frame.rem(thread, kWarp);
  // For each token of the lane, the scales of all groups.
  SmallVector<std::pair<Value, SmallVector<Value>>> loaded;
  for (int64_t i = 0; i < tokensOfTile; i += kWarp) {
    Value row = frame.add(lane, frame.index(i));
    auto load = [&] { return loadToken(tiles, tile, token, tokens, row); };
    loaded.emplace_back(row, condition ? loadIf(condition, load) : load());
  }
  return [this, loaded, thread, tile](MutableArrayRef<Value> units) {
    DeviceMath f(frame);
    for (int64_t group = 0; group < groups; ++group) {
      Value unit;
      if (hasUnits) {
        Value most = frame.i32(0), mask = frame.i32(0xFF << kPlace);
        for (const auto &[row, ofToken] : loaded)
          most =
              frame.max(most, arith::AndIOp::create(
                                  builder, loc, toBits(ofToken[group]), mask));
        most = NVVM::ReduxOp::create(builder, loc, most.getType(), most,
                                     NVVM::ReduxKind::UMAX, frame.i32(-1));
        most = frame.min(frame.max(most, frame.i32(kLeast << kPlace)),
                         frame.i32(kMost << kPlace));
        Value before = units[group];
        unit = toFloat(frame.min(toBits(before), divide(2 * kZero - 1, most)));
        units[group] = unit;
        units[groups + group] = f.mul(unit, invert(before));
      }
      for (const auto &[row, ofToken] : loaded) {
        Value scale = ofToken[group];
        TileStoreOp::create(builder, loc, unit ? f.mul(scale, unit) : scale,
                            scales, getRow(thread, tile, group), row);
      }
    }
  };
}

std::pair<Value, Value> TileScales::get(Value thread, Value tile, int64_t group,
                                        Value token) const {
  Value both =
      TileLoadOp::create(builder, loc, VectorType::get(2, builder.getF32Type()),
                         scales, getRow(thread, tile, group), token);
  auto elements = vector::ToElementsOp::create(builder, loc, both);
  return {elements.getResult(0), elements.getResult(1)};
}
