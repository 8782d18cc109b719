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
#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <array>

using namespace mlir;
using namespace mlir::kvcache;

/// Elements of 16 bits that a thread stores into the tile at once.
constexpr int64_t kStored = 8;
/// Elements of a query up to which a warp keeps its rows in registers.
constexpr int64_t kMostKept = 128;

static bool needsFactors(Value queries) {
  return cast<ShapedType>(queries.getType()).getElementType().isBF16();
}

QueryTile::QueryTile(const Frame &frame, const JoinedRows &queries,
                     FloatType lane, int64_t rows, int64_t size, bool isForRaw)
    : frame(frame), builder(frame.builder), loc(frame.loc), queries(queries),
      lane(lane), rows(rows), size(size), isForRaw(isForRaw),
      hasFactors(isForRaw && needsFactors(queries.first)) {}

bool QueryTile::canBeForRaw(Value queries, int64_t size) {
  int64_t units = size / kStored;
  return !needsFactors(queries) ||
         (units <= kWarp && llvm::isPowerOf2_64(units));
}

void QueryTile::allocate() {
  tile = AllocTileOp::create(
      builder, loc, TensorCores::getTile(lane, rows, size), IntegerAttr());
  if (hasFactors)
    factors =
        AllocTileOp::create(builder, loc,
                            TileType::get(builder.getContext(), 1, rows,
                                          builder.getF32Type(), Swizzle::None),
                            IntegerAttr());
}

void QueryTile::store(
    Value thread, int64_t threads,
    function_ref<std::pair<Value, Value>(Value ofTile)> getRow) const {
  int64_t units = size / kStored;
  frame.loop(thread, frame.index(rows * units), frame.index(threads),
             [&](Value unit) {
               Value ofTile = frame.div(unit, units);
               Value ofRow = frame.rem(unit, units);
               Value d = frame.mul(ofRow, kStored);
               auto [row, head] = getRow(ofTile);
               Value q = loadJoined(frame, queries, {row, head}, d, kStored);
               if (hasFactors)
                 q = scaleRow(q, ofTile, ofRow);
               storeUnit(convertLanes(frame, q, lane), ofTile, d);
             });
}

// The exponent of an infinite element is 255: it stays infinite.
Value QueryTile::scaleRow(Value elements, Value ofTile, Value ofRow) const {
  constexpr int64_t place = 23, zero = 127, most = 14;
  FloatBuilder f(builder, loc);
  Type i32 = builder.getI32Type();
  elements = convertLanes(frame, elements, builder.getF32Type());
  Value largest = f.maxOf(f.abs(elements));
  for (int64_t offset = 1; offset < size / kStored; offset *= 2) {
    auto shuffle = gpu::ShuffleOp::create(
        builder, loc, largest, static_cast<int32_t>(offset),
        static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR);
    largest = f.max(largest, shuffle.getShuffleResult());
  }
  Value bits = arith::BitcastOp::create(builder, loc, i32, largest);
  bits = arith::AndIOp::create(builder, loc, bits, frame.i32(0xFF << place));
  bits = frame.max(bits, frame.i32((most + 1) << place));
  auto getPower = [&](Value exponent) -> Value {
    return arith::BitcastOp::create(builder, loc, builder.getF32Type(),
                                    exponent);
  };
  Value inverse = frame.sub(bits, frame.i32(most << place));
  Value power = frame.sub(frame.i32((2 * zero) << place), inverse);
  frame.runIf(frame.equal(ofRow, frame.index(0)), [&] {
    TileStoreOp::create(builder, loc, getPower(inverse), factors,
                        frame.index(0), ofTile);
  });
  return f.mul(elements, f.broadcast(getPower(power), elements));
}

void QueryTile::storeUnit(Value elements, Value ofTile, Value d) const {
  if (!isForRaw) {
    TileStoreOp::create(builder, loc, elements, tile, ofTile, d);
    return;
  }
  // Of elements 0 to 7 of 16, 0, 1, 4, 5 are columns 0 to 3, and the others are
  // 8 to 11; elements 8 to 15 follow these.
  Value half = frame.rem(d, 2 * kStored);
  Value first = frame.add(frame.sub(d, half), frame.div(half, 2));
  const std::array<std::array<int64_t, 4>, 2> orders = {
      {{0, 1, 4, 5}, {2, 3, 6, 7}}};
  for (auto [i, order] : llvm::enumerate(orders)) {
    Value some = vector::ShuffleOp::create(builder, loc, elements, elements,
                                           ArrayRef<int64_t>(order));
    TileStoreOp::create(
        builder, loc, some, tile, ofTile,
        frame.add(first, frame.index(static_cast<int64_t>(i) * kStored)));
  }
}

Value QueryTile::getFactor(Value ofTile) const {
  if (!hasFactors)
    return {};
  return TileLoadOp::create(builder, loc, builder.getF32Type(), factors,
                            frame.index(0), ofTile);
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
