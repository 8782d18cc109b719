//===- SwappedCores.cpp - Products of few query rows ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SwappedCores.h"

#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void SwappedCores::allocate() {
  auto allocateTile = [&](TileType type) {
    return AllocTileOp::create(builder, loc, type, IntegerAttr());
  };
  weightTile = allocateTile(TensorCores::getTile(type, tokens, rows));
  warpTile = allocateTile(TileType::get(builder.getContext(), kWarps, rows,
                                        builder.getF32Type(), Swizzle::None));
}

void SwappedCores::placeLane(Value thread) {
  lane = frame.rem(thread, kLanes);
  warp = frame.div(thread, kLanes);
  column = frame.add(frame.mul(warp, kvcache::kRowsOfWarp), frame.div(lane, 4));
  firstRow = frame.mul(frame.rem(lane, 4), 2);
}

Value SwappedCores::hide(Value thread) const {
  Value same = gpu::ShuffleOp::create(builder, loc, frame.toI32(thread), 0,
                                      kLanes, gpu::ShuffleMode::XOR)
                   .getShuffleResult();
  return frame.fromI32(same);
}

Value SwappedCores::getRow(int64_t row) const {
  return frame.add(firstRow, frame.index(layout.getRow(row)));
}

SmallVector<Value>
SwappedCores::reduceRows(ArrayRef<Value> values,
                         function_ref<Value(Value, Value)> combine) const {
  auto pair = VectorType::get(2, builder.getF32Type());
  frame.runIf(frame.equal(frame.div(lane, 4), frame.index(0)), [&] {
    for (int64_t r = 0; r < layout.countRows(); r += 2) {
      Value ofRows = vector::FromElementsOp::create(builder, loc, pair,
                                                    values.slice(r, 2));
      TileStoreOp::create(builder, loc, ofRows, warpTile, warp, getRow(r));
    }
  });
  gpu::BarrierOp::create(builder, loc);
  SmallVector<Value> reduced;
  for (int64_t r = 0; r < layout.countRows(); r += 2) {
    SmallVector<Value> ofRows;
    for (int64_t w = 0; w < kWarps; ++w) {
      Value loaded = TileLoadOp::create(builder, loc, pair, warpTile,
                                        frame.index(w), getRow(r));
      auto elements = vector::ToElementsOp::create(builder, loc, loaded);
      if (w == 0)
        llvm::append_range(ofRows, elements.getResults());
      else
        for (auto [row, other] : llvm::zip_equal(ofRows, elements.getResults()))
          row = combine(row, other);
    }
    llvm::append_range(reduced, ofRows);
  }
  return reduced;
}

void SwappedCores::storeWeights(ArrayRef<Value> weights) const {
  auto floats = VectorType::get(2, builder.getF32Type());
  auto pair = VectorType::get(2, type);
  for (int64_t run = 0; run < layout.countRuns(tokens); ++run)
    for (int64_t r = 0; r < layout.countRows(); r += 2) {
      Value ofToken = vector::FromElementsOp::create(
          builder, loc, floats,
          ValueRange{weights[layout.getElement(r, run, 0)],
                     weights[layout.getElement(r + 1, run, 0)]});
      Value token = frame.add(column, frame.index(layout.getColumn(run)));
      TileStoreOp::create(builder, loc,
                          arith::TruncFOp::create(builder, loc, pair, ofToken),
                          weightTile, token, getRow(r));
    }
  products.emitFence();
  gpu::BarrierOp::create(builder, loc);
}

SmallVector<Value> SwappedCores::addColumns(Value values,
                                            ArrayRef<Value> sums) const {
  return products.addTransposed(values, weightTile, sums);
}
