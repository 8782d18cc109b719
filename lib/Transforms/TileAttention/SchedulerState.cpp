//===- SchedulerState.cpp - Numbers of a persistent scheduler -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchedulerState.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Rows of the tile, and numbers of a row.
constexpr int64_t kRows = 3, kNumbers = 4;

SchedulerState::SchedulerState(const Frame &frame) : frame(frame) {
  OpBuilder &builder = frame.builder;
  tile =
      AllocTileOp::create(builder, frame.loc,
                          TileType::get(builder.getContext(), kRows, kNumbers,
                                        builder.getI32Type(), Swizzle::None),
                          IntegerAttr());
}

SmallVector<Value> SchedulerState::load(Row row) const {
  OpBuilder &builder = frame.builder;
  Value numbers = TileLoadOp::create(
      builder, frame.loc, VectorType::get(kNumbers, builder.getI32Type()), tile,
      frame.index(row), frame.index(0));
  auto elements = vector::ToElementsOp::create(builder, frame.loc, numbers);
  return SmallVector<Value>(elements.getResults());
}

void SchedulerState::store(Row row, ValueRange numbers) const {
  OpBuilder &builder = frame.builder;
  Value vector = vector::FromElementsOp::create(
      builder, frame.loc, VectorType::get(kNumbers, builder.getI32Type()),
      numbers);
  TileStoreOp::create(builder, frame.loc, vector, tile, frame.index(row),
                      frame.index(0));
}
