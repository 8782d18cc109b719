//===- TensorCores.cpp - Products of tiles on tensor cores ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorCores.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

TensorCores::TensorCores(const Frame &frame, Value lane)
    : frame(frame), builder(frame.builder), loc(frame.loc),
      row(frame.rem(lane, 16)), column(frame.mul(frame.div(lane, 16), 8)) {}

Swizzle TensorCores::getSwizzle(int64_t columns) {
  // Spans of 64, 32 and 16 elements.
  if (columns % 64 == 0)
    return Swizzle::Span128;
  return columns % 32 == 0 ? Swizzle::Span64 : Swizzle::Span32;
}

TileType TensorCores::getTile(Type lane, int64_t rows, int64_t columns) {
  return TileType::get(lane.getContext(), rows, columns, lane,
                       getSwizzle(columns));
}

Fragment TensorCores::load(Value tile, Value firstRow, Value firstColumn,
                           bool transposed) const {
  auto type = cast<TileType>(tile.getType());
  // The swizzle's pattern has 8 rows: 16 rows further, it is the same.
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t rowBytes = type.getLayout().getChunkColumns() * bytes;
  Value ofLane = bytes == 1 ? frame.mul(column, 2) : column;
  Value offset = TileOffsetOp::create(builder, loc, tile, row,
                                      frame.add(ofLane, firstColumn));
  offset = frame.add(offset, frame.mul(firstRow, rowBytes));
  Value memory = TileMemoryOp::create(builder, loc, type.getMemoryType(), tile);
  Type i32 = builder.getI32Type();
  auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                                 {i32, i32, i32, i32});
  Value loaded = NVVM::LdMatrixOp::create(
      builder, loc, result, getSharedPointer(builder, loc, memory, offset),
      /*num=*/4, transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Fragment fragment;
  for (auto [i, value] : llvm::enumerate(fragment))
    value = LLVM::ExtractValueOp::create(builder, loc, loaded, i);
  return fragment;
}

Accumulator TensorCores::multiply(const Fragment &a, Value b0, Value b1,
                                  const Accumulator &sums, Type lane) const {
  bool isHalf = lane.isF16();
  auto asOperand = [&](Value pair) -> Value {
    if (!isHalf)
      return pair;
    return LLVM::BitcastOp::create(builder, loc, VectorType::get(2, lane),
                                   pair);
  };
  SmallVector<Value> left = llvm::map_to_vector(a, asOperand);
  Type f32 = builder.getF32Type();
  auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                                 {f32, f32, f32, f32});
  NVVM::MMATypes type = isHalf ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Value product = NVVM::MmaOp::create(
      builder, loc, result, left, ValueRange{asOperand(b0), asOperand(b1)},
      ValueRange(sums), ArrayRef<int64_t>{16, 8, 16}, std::nullopt,
      std::nullopt, std::array{type, type},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Accumulator next;
  for (auto [i, value] : llvm::enumerate(next))
    value = LLVM::ExtractValueOp::create(builder, loc, product, i);
  return next;
}

Value TensorCores::pack(Value low, Value high, Type lane) const {
  Value pair = vector::FromElementsOp::create(
      builder, loc, VectorType::get(2, builder.getF32Type()),
      ValueRange{low, high});
  pair = arith::TruncFOp::create(builder, loc, VectorType::get(2, lane), pair);
  pair = vector::BitCastOp::create(
      builder, loc, VectorType::get(1, builder.getI32Type()), pair);
  return vector::ExtractOp::create(builder, loc, pair, 0);
}
