//===- QueryStage.cpp - The queries of a block in a tile ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryStage.h"

#include "../ExpandOps/TensorCores.h"
#include "TileScores.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Elements that a thread loads and stores at once.
constexpr int64_t kRun = 8;

void QueryStage::allocate() {
  tile = AllocTileOp::create(
      frame.builder, frame.loc,
      TensorCores::getTile(element, block.plan.rows, block.keySize),
      IntegerAttr());
}

void QueryStage::store(Value count) const {
  int64_t runs = block.keySize / kRun;
  Type type = VectorType::get(kRun, element);
  frame.loop(
      block.thread, frame.index(block.plan.rows * runs), frame.index(threads),
      [&](Value number) {
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
        TileStoreOp::create(frame.builder, frame.loc, elements, tile, row, d);
      });
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
  Value row = frame.add(block.rows.first, i);
  block.checkRow(row);
  Value elements =
      loadJoined(frame, block.getQueries(), {row, queryHead}, d, kRun);
  elements = convertLanes(frame, elements, element);
  if (!TileScores::areProducts(block))
    return elements;
  return flipSigns(elements, TileScores::getFactor(block, queryHead));
}
