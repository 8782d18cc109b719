//===- GroupExchange.cpp - Numbers of two warpgroups' rows ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupExchange.h"

#include "../PlanAttention/TileSizes.h"

#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The warpgroups.
constexpr int64_t kGroups = 2;
/// Named barriers: of the turns of each warpgroup, and of the threads of each.
constexpr int64_t kTurnBarrier = 1, kGroupBarrier = kTurnBarrier + kGroups;

Value kvcache::allocateRowNumbers(const Frame &frame, int64_t lines,
                                  int64_t rows) {
  auto type = TileType::get(frame.builder.getContext(), lines, rows,
                            frame.builder.getF32Type(), Swizzle::None);
  return AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
}

Value GroupExchange::allocate(const Frame &frame, int64_t rows) {
  constexpr int64_t numbersOfRow = 2;
  return allocateRowNumbers(frame, kGroups * numbersOfRow, rows);
}

Value GroupExchange::getPlace(RowNumber number, Value storer) const {
  return frame.add(storer, frame.index(number * kGroups));
}

void kvcache::storeRowNumbers(const Frame &frame, const FragmentBuilder &b,
                              Value rows, Value rowNumbers, Value line) {
  OpBuilder &builder = frame.builder;
  auto tile = cast<TileType>(rowNumbers.getType());
  auto type = MemRefType::get(
      {tile.getRows(), tile.getColumns()}, tile.getElementType(),
      MemRefLayoutAttrInterface(), tile.getMemoryType().getMemorySpace());
  Value bytes = TileMemoryOp::create(builder, frame.loc, tile.getMemoryType(),
                                     rowNumbers);
  Value memory = memref::ViewOp::create(builder, frame.loc, type, bytes,
                                        frame.index(0), ValueRange());
  auto store = StoreRowsOp::create(builder, frame.loc, rows, frame.index(0),
                                   /*column=*/Value(), memory, b.getThread(),
                                   /*alignment=*/IntegerAttr());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&store.getBody(), {},
                                    builder.getIndexType(), {frame.loc});
  Value isStored =
      arith::ConstantOp::create(builder, frame.loc, builder.getBoolAttr(true));
  YieldOp::create(builder, frame.loc,
                  ValueRange{line, body->getArgument(0), isStored});
}

void GroupExchange::store(RowNumber number, Value rows) const {
  storeRowNumbers(frame, b, rows, rowNumbers, getPlace(number, group));
}

Value GroupExchange::load(RowNumber number, FragmentType type) const {
  Value zero = arith::ConstantOp::create(frame.builder, frame.loc,
                                         frame.builder.getF32FloatAttr(0));
  return b.map(b.splat(type, zero),
               [&](ValueRange place) -> Value {
                 return TileLoadOp::create(
                     frame.builder, frame.loc, frame.builder.getF32Type(),
                     rowNumbers, getPlace(number, getOther()), place[1]);
               },
               {frame.index(0), Value()});
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

void GroupExchange::sync(Value barrier, int64_t threads) const {
  NVVM::BarrierOp::create(frame.builder, frame.loc, TypeRange(), barrier,
                          frame.i32(threads), /*reductionOp=*/{},
                          /*reductionPredicate=*/Value());
}

Value GroupExchange::getTurns(Value giver) const {
  return frame.add(frame.toI32(giver), frame.i32(kTurnBarrier));
}

void GroupExchange::takeTurn() const {
  sync(getTurns(getOther()), kGroups * kWarpgroup);
}

void GroupExchange::giveTurn() const {
  NVVM::BarrierArriveOp::create(frame.builder, frame.loc, getTurns(group),
                                frame.i32(kGroups * kWarpgroup));
}

void GroupExchange::syncGroup() const {
  sync(frame.add(frame.toI32(group), frame.i32(kGroupBarrier)), kWarpgroup);
}
