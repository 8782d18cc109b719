//===- HostMmaBuilder.cpp - Products of a panel of rows -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostMmaBuilder.h"
#include "PairBuilder.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

int64_t HostMmaBuilder::getMostRows(int64_t vectors) const {
  if (kind == HostMma::AMX)
    return 2;
  int64_t bits = frame.target.vectorBits;
  return bits < 256 ? 2 : bits < 512 || vectors > 1 ? 4 : 8;
}

int64_t HostMmaBuilder::getMostVectors() const {
  if (kind == HostMma::AMX)
    return 2;
  return frame.target.vectorBits < 512 ? 1 : kPanelVectors;
}

Value HostMmaBuilder::loadTile(Type element, Value memory,
                               ValueRange indices) const {
  int64_t columns = kLanes * 32 / element.getIntOrFloatBitWidth();
  auto type = amx::TileType::get({kLanes, columns}, element);
  return amx::TileLoadOp::create(frame.builder, frame.loc, type, memory,
                                 indices);
}

Value HostMmaBuilder::loadLhs(Value memory, ValueRange indices) const {
  if (kind == HostMma::AMX)
    return loadTile(frame.builder.getBF16Type(), memory,
                    getTiledIndices(frame, indices[0], indices[1]));
  Value number = lanes.broadcast(memory, indices);
  return kind == HostMma::Dot ? PairBuilder(frame).getElements(number) : number;
}

Value HostMmaBuilder::loadRhs(Value memory, Value vector, Value row) const {
  Value zero = frame.index(0);
  if (kind == HostMma::AMX)
    return loadTile(frame.builder.getBF16Type(), memory, {vector, row, zero});
  Value rows = lanes.load(memory, {vector, row, zero});
  return kind == HostMma::Dot ? PairBuilder(frame).getElements(rows) : rows;
}

Value HostMmaBuilder::loadAcc(Value memory, Value vector, Value row) const {
  Value zero = frame.index(0);
  if (kind == HostMma::AMX)
    return loadTile(frame.builder.getF32Type(), memory, {vector, row, zero});
  return lanes.load(memory, {vector, row, zero});
}

Value HostMmaBuilder::getZero() const {
  Type f32 = frame.builder.getF32Type();
  if (kind == HostMma::AMX)
    return amx::TileZeroOp::create(frame.builder, frame.loc,
                                   amx::TileType::get({kLanes, kLanes}, f32));
  FloatBuilder f(frame.builder, frame.loc);
  return f.constant(f.vectorOf(kLanes), 0);
}

void HostMmaBuilder::storeAcc(Value acc, Value memory, Value vector,
                              Value row) const {
  SmallVector<Value> indices = {vector, row, frame.index(0)};
  if (kind == HostMma::AMX)
    amx::TileStoreOp::create(frame.builder, frame.loc, memory, indices, acc);
  else
    lanes.store(acc, memory, indices);
}

Value HostMmaBuilder::multiply(Value lhs, Value rhs, Value acc) const {
  switch (kind) {
  case HostMma::FMA:
    return FloatBuilder(frame.builder, frame.loc).fma(lhs, rhs, acc);
  case HostMma::Dot:
    return x86vector::DotBF16Op::create(frame.builder, frame.loc, acc.getType(),
                                        acc, lhs, rhs);
  case HostMma::AMX:
    return amx::TileMulFOp::create(frame.builder, frame.loc, acc.getType(), lhs,
                                   rhs, acc);
  }
  llvm_unreachable("unknown instructions");
}
