//===- QueryStage.cpp - The queries of a block in a tile ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryStage.h"

#include "../PlanAttention/TileStaging.h"
#include "PairedRuns.h"
#include "ScoreRows.h"

#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

QueryStage::QueryStage(const TileRows &block, FloatType element,
                       int64_t threads)
    : block(block), frame(block.getFrame()), element(element), threads(threads),
      hasFactors(dequantizesInRegisters(block.getConfig()) &&
                 getElementTypeOrSelf(block.getOp().getQ()).isBF16()) {}

void QueryStage::allocate() {
  tile = AllocTileOp::create(
      frame.builder, frame.loc,
      getMatrixTile(element, *block.getConfig().rows, block.getSizes().keySize),
      IntegerAttr());
  if (hasFactors)
    factors = AllocTileOp::create(
        frame.builder, frame.loc,
        TileType::get(frame.builder.getContext(), 1, *block.getConfig().rows,
                      frame.builder.getF32Type(), Swizzle::None),
        IntegerAttr());
}

void QueryStage::store(Value count) const {
  int64_t runs = block.getSizes().keySize / kRun;
  Type type = VectorType::get(kRun, element);
  frame.loop(
      block.rows.work.thread, frame.index(*block.getConfig().rows * runs),
      frame.index(threads), [&](Value number) {
        Value row = frame.div(number, runs);
        Value d = frame.mul(frame.rem(number, runs), kRun);
        auto load = [&] { return loadRow(row, d); };
        auto makeZeros = [&]() -> Value {
          return arith::ConstantOp::create(frame.builder, frame.loc,
                                           frame.builder.getZeroAttr(type));
        };
        Value elements =
            count ? frame.selectIf(frame.below(row, count), load, makeZeros)
                  : load();
        storeRun(elements, row, d);
      });
}

void QueryStage::storeRun(Value elements, Value row, Value d) const {
  if (!dequantizesInRegisters(block.getConfig()))
    TileStoreOp::create(frame.builder, frame.loc, elements, tile, row, d);
  else if (isPacked(block.getOp().getKeyCache()))
    storeQuadRun(frame, elements, tile, row, d);
  else
    storePairedRun(frame, elements, tile, row, d);
}

Value QueryStage::flipSigns(Value elements, Value factor) const {
  OpBuilder &builder = frame.builder;
  constexpr int64_t half = 16;
  Type i32 = builder.getI32Type();
  auto words = VectorType::get(kRun / 2, i32);
  Value bits = arith::BitcastOp::create(builder, frame.loc, i32, factor);
  Value high = arith::AndIOp::create(builder, frame.loc, bits,
                                     frame.i32(1u << (2 * half - 1)));
  Value low = arith::ShRUIOp::create(builder, frame.loc, high, frame.i32(half));
  Value signs = vector::BroadcastOp::create(
      builder, frame.loc, words,
      arith::OrIOp::create(builder, frame.loc, high, low));
  Value flipped = arith::XOrIOp::create(
      builder, frame.loc,
      vector::BitCastOp::create(builder, frame.loc, words, elements), signs);
  return vector::BitCastOp::create(builder, frame.loc, elements.getType(),
                                   flipped);
}

Value QueryStage::loadRow(Value blockRow, Value d) const {
  auto [i, queryHead] = block.getRow(blockRow);
  Value row = frame.add(block.rows.sequence.first, i);
  checkRow(frame, block.getOp(), row);
  Value elements =
      loadJoined(frame, getQueries(block.getOp()), {row, queryHead}, d, kRun);
  if (hasFactors)
    elements = scaleRow(elements, blockRow, d);
  elements = convertLanes(frame, elements, element);
  if (!areScoresProducts(block))
    return elements;
  return flipSigns(elements, getHeadFactor(block, queryHead));
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

// The exponent of an infinite element is 255: it stays infinite.
Value QueryStage::scaleRow(Value elements, Value row, Value d) const {
  constexpr int64_t place = 23, zero = 127, most = 14;
  OpBuilder &builder = frame.builder;
  FloatBuilder f(builder, frame.loc);
  Type i32 = builder.getI32Type();
  elements = convertLanes(frame, elements, builder.getF32Type());
  Value largest = f.maxOf(f.abs(elements));
  for (int64_t offset = 1; offset < block.getSizes().keySize / kRun;
       offset *= 2) {
    auto shuffle = gpu::ShuffleOp::create(
        builder, frame.loc, largest, static_cast<int32_t>(offset),
        static_cast<int32_t>(kWarp), gpu::ShuffleMode::XOR);
    largest = f.max(largest, shuffle.getShuffleResult());
  }
  Value bits = arith::BitcastOp::create(builder, frame.loc, i32, largest);
  bits =
      arith::AndIOp::create(builder, frame.loc, bits, frame.i32(0xFF << place));
  bits = frame.max(bits, frame.i32((most + 1) << place));
  auto getPower = [&](Value exponent) -> Value {
    return arith::BitcastOp::create(builder, frame.loc, builder.getF32Type(),
                                    exponent);
  };
  Value inverse = frame.sub(bits, frame.i32(most << place));
  Value power = frame.sub(frame.i32((2 * zero) << place), inverse);
  frame.runIf(frame.equal(d, frame.index(0)), [&] {
    TileStoreOp::create(builder, frame.loc, getPower(inverse), factors,
                        frame.index(0), row);
  });
  return f.mul(elements, f.broadcast(getPower(power), elements));
}

Value QueryStage::loadFactors(const FragmentBuilder &b, FragmentType rows,
                              Value firstRow) const {
  if (!hasFactors)
    return {};
  Value one = arith::ConstantOp::create(frame.builder, frame.loc,
                                        frame.builder.getF32FloatAttr(1));
  return b.map(b.splat(rows, one),
               [&](ValueRange place) -> Value {
                 return TileLoadOp::create(frame.builder, frame.loc,
                                           frame.builder.getF32Type(), factors,
                                           frame.index(0), place[1]);
               },
               {firstRow, Value()});
}
