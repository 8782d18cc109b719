//===- TileConverter.cpp - Tiles that threads convert ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileConverter.h"

#include "../PlanAttention/TileStaging.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/CachePolicy.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::kvcache;

/// Granules of a raw tile that a thread loads before it converts one. Ids of
/// sparse rows take registers as well.
constexpr int64_t kRawLoads = 6, kGatheredRawLoads = 2;

TileConverter::TileConverter(const Frame &frame, const TileShape &shape,
                             int64_t mostLoads, bool isRaw)
    : frame(frame), shape(shape), mostLoads(mostLoads), isRaw(isRaw) {
  if (isRaw && shape.rope)
    groupScales.emplace(frame, shape.cache, shape.getFields().front().size,
                        shape.tokens, shape.threads);
}

SmallVector<Type> TileConverter::getRawTiles() const {
  if (!groupScales)
    return {shape.getCopiedRawTile(frame.target)};
  SmallVector<Type> types;
  for (const TileField &field : shape.getFields())
    types.push_back(TileType::get(frame.builder.getContext(), shape.tokens,
                                  field.size, field.getType().getElementType(),
                                  Swizzle::None));
  return types;
}

void TileConverter::allocate() {
  auto allocateTile = [&](TileType type) {
    return AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
  };
  tile = allocateTile(shape.getTile());
  if (shape.unscaled)
    scales =
        allocateTile(TileType::get(frame.builder.getContext(), 1, shape.tokens,
                                   frame.builder.getF32Type(), Swizzle::None));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Zeros unless the condition is null or holds.
static Value selectIfGiven(const Frame &frame, Value condition, Value value) {
  if (!condition)
    return value;
  Value zero = arith::ConstantOp::create(
      frame.builder, frame.loc, frame.builder.getZeroAttr(value.getType()));
  return arith::SelectOp::create(frame.builder, frame.loc, condition, value,
                                 zero);
}

TileConverter::Granule TileConverter::loadGranule(const TileTokens &tokens,
                                                  const TileField &field,
                                                  int64_t width,
                                                  Value number) const {
  int64_t granules = field.size / width;
  Value row = frame.div(number, granules);
  Value d = frame.mul(frame.rem(number, granules), width);
  auto [place, isRow] = tokens.getPlace(frame, shape, row);
  Value head = tokens.tokens.head;
  Value elements =
      shape.unscaled
          ? loadUnscaled(frame, field.cache, place, head, d, width, shape.lane,
                         isStreamed(shape.hint))
          : loadElements(frame, field.cache, place, head, d, width, shape.lane,
                         /*factor=*/Value(), isStreamed(shape.hint));
  if (field.first)
    d = frame.add(d, frame.index(field.first));
  return {row, d, selectIfGiven(frame, isRow, elements)};
}

void TileConverter::fillFromCaches(Value thread,
                                   const TileTokens &tokens) const {
  for (const TileField &field : shape.getFields()) {
    int64_t bits = field.getType().getElementType().getIntOrFloatBitWidth();
    int64_t width = getLanes(field.cache, field.size,
                             std::min<int64_t>(2 * kGranule, 128 / bits));
    storeGranules(thread, field.size, width, mostLoads, [&](Value number) {
      return loadGranule(tokens, field, width, number);
    });
  }
}

//===----------------------------------------------------------------------===//
// Raw tiles
//===----------------------------------------------------------------------===//

void TileConverter::fillFromRaw(Value thread, ValueRange rawTiles,
                                Value number) const {
  if (!groupScales)
    return storeGranules(
        thread, shape.size, kGranule,
        shape.gathered ? kGatheredRawLoads : kRawLoads,
        [&](Value granule) { return loadRawGranule(rawTiles[0], granule); });
  for (auto [field, rawTile] : llvm::zip_equal(shape.getFields(), rawTiles))
    storeGranules(thread, field.size, kGranule, mostLoads,
                  [&, &field = field, rawTile = rawTile](Value granule) {
                    return loadFieldGranule(field, rawTile, number, granule);
                  });
}

// Neighbouring threads have granules of a row, and then of the next row of the
// same chunk: so they are in different banks, of raw tiles and of those that
// they store.
TileConverter::Granule TileConverter::loadRawGranule(Value rawTile,
                                                     Value number) const {
  OpBuilder &builder = frame.builder;
  TileType type = shape.getCopiedRawTile(frame.target);
  // Some threads have granules after the last.
  int64_t all = shape.tokens * shape.size / kGranule;
  if (all % shape.threads)
    number = frame.min(number, frame.index(all - 1));
  // Chunks that a swizzle would have: their granules are fewer instructions
  // away.
  TileType order =
      shape.gathered ? type : shape.getRawTile(shape.getRawSwizzle());
  int64_t columns = std::min(order.getLayout().getChunkColumns(), shape.size);
  int64_t granules = columns / kGranule;
  Value row = frame.div(number, granules), first = frame.index(0);
  if (columns < shape.size) {
    first = frame.mul(frame.div(row, shape.tokens), columns);
    row = frame.rem(row, shape.tokens);
  }
  Value d = frame.add(first, frame.mul(frame.rem(number, granules), kGranule));
  Value elements = TileLoadOp::create(
      builder, frame.loc, VectorType::get(kGranule, type.getElementType()),
      rawTile, row, d);
  Value one =
      arith::ConstantOp::create(builder, frame.loc, builder.getF32FloatAttr(1));
  return {row, d,
          DequantizeOp::create(builder, frame.loc,
                               VectorType::get(kGranule, shape.lane), elements,
                               one, /*tensor_scale=*/Value())};
}

// Threads beside each other have granules of one row: no bank serves two of
// them.
TileConverter::Granule TileConverter::loadFieldGranule(const TileField &field,
                                                       Value rawTile,
                                                       Value tileNumber,
                                                       Value number) const {
  int64_t granules = field.size / kGranule, all = shape.tokens * granules;
  auto vector = VectorType::get(
      kGranule, cast<TileType>(rawTile.getType()).getElementType());
  // Some threads have granules after the last.
  if (all % shape.threads)
    number = frame.min(number, frame.index(all - 1));
  Value row = frame.div(number, granules);
  Value d = frame.mul(frame.rem(number, granules), kGranule);
  Value elements =
      TileLoadOp::create(frame.builder, frame.loc, vector, rawTile, row, d);
  if (vector.getElementTypeBitWidth() == 8)
    elements = DequantizeOp::create(
        frame.builder, frame.loc, VectorType::get(kGranule, shape.lane),
        elements, groupScales->get(tileNumber, row, d),
        /*tensor_scale=*/Value());
  return {row, frame.add(d, frame.index(field.first)), elements};
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void TileConverter::storeGranules(
    Value thread, int64_t columns, int64_t width, int64_t loadsAtOnce,
    function_ref<Granule(Value number)> load) const {
  int64_t threads = shape.threads, all = shape.tokens * (columns / width);
  int64_t loads =
      isRaw ? getDivisorUpTo(std::max<int64_t>(all / threads, 1), loadsAtOnce)
            : std::clamp<int64_t>(all / threads, 1, loadsAtOnce);
  int64_t step = loads * threads;
  frame.loop(frame.index(0), frame.index(all), frame.index(step),
             [&](Value base) {
               SmallVector<std::pair<Value, Granule>> loaded;
               for (int64_t i = 0; i < loads; ++i) {
                 Value stepThread = frame.add(thread, frame.index(i * threads));
                 Value number = frame.add(base, stepThread);
                 loaded.emplace_back(number, load(number));
               }
               for (const auto &[number, granule] : loaded) {
                 Value isInTile;
                 if (all % step)
                   isInTile = frame.below(number, frame.index(all));
                 runIfGiven(frame, isInTile,
                            [&, &granule = granule] { storeGranule(granule); });
               }
             });
}

void TileConverter::storeGranule(const Granule &granule) const {
  int64_t width = cast<VectorType>(granule.elements.getType()).getNumElements();
  for (int64_t i = 0; i < width; i += kGranule) {
    Value elements = granule.elements;
    if (width > kGranule)
      elements = vector::ExtractStridedSliceOp::create(
          frame.builder, frame.loc, elements, ArrayRef<int64_t>{i},
          ArrayRef<int64_t>{kGranule}, ArrayRef<int64_t>{1});
    TileStoreOp::create(frame.builder, frame.loc, elements, tile, granule.row,
                        frame.add(granule.d, frame.index(i)));
  }
}

//===----------------------------------------------------------------------===//
// Scales of tokens
//===----------------------------------------------------------------------===//

std::function<void()>
TileConverter::loadScales(Value thread, const TileTokens &tokens) const {
  SmallVector<std::pair<Value, Value>> loaded;
  for (int64_t i = 0; i < shape.tokens; i += shape.threads) {
    Value row = frame.add(thread, frame.index(i));
    auto [place, isRow] = tokens.getPlace(frame, shape, row);
    Value scale = loadTokenScale(frame, shape.cache, place, tokens.tokens.head);
    loaded.emplace_back(row, selectIfGiven(frame, isRow, scale));
  }
  return [this, loaded] {
    for (auto [row, scale] : loaded) {
      Value isInTile;
      if (shape.tokens % shape.threads)
        isInTile = frame.below(row, frame.index(shape.tokens));
      runIfGiven(frame, isInTile, [&, row = row, scale = scale] {
        TileStoreOp::create(frame.builder, frame.loc, scale, scales,
                            frame.index(0), row);
      });
    }
  };
}

Value TileConverter::getScale(Value column) const {
  return TileLoadOp::create(frame.builder, frame.loc,
                            frame.builder.getF32Type(), scales, frame.index(0),
                            column);
}
