//===- TensorSums.cpp - Products of tiles into tensor memory --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorSums.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Warps that reach all lanes.
constexpr int64_t kWarpsOfLanes = 4;
/// Columns of sums that a lane has in registers at once: beside scores, and at
/// the end.
constexpr int64_t kFewColumns = 32, kMostColumns = 64;

TensorSums::TensorSums(const Frame &frame, int64_t rows, int64_t tokens,
                       int64_t values, FloatType lane)
    : frame(frame), builder(frame.builder), loc(frame.loc), rows(rows),
      tokens(tokens), values(values), lane(lane),
      products(frame, rows, tokens, values, lane) {}

Value TensorSums::getFirstRow(const Frame &frame, int64_t rows, Value warp) {
  int64_t halves = rows / (kWarpsOfLanes * kRowsOfWarp);
  Value row = frame.mul(frame.rem(warp, kWarpsOfLanes), halves * kRowsOfWarp);
  return frame.add(row, frame.mul(frame.div(warp, kWarpsOfLanes), kRowsOfWarp));
}

void TensorSums::allocate(Value thread) {
  constexpr int64_t warp = 32;
  if (rows == TmemTileType::kMemoryLanes)
    half = frame.div(thread, warp * kWarpsOfLanes);
  products.allocate(thread);
}

SmallVector<Value>
TensorSums::multiplyRows(Value queries, Value keys,
                         function_ref<void()> meanwhile) const {
  products.multiplyRows(queries, keys, meanwhile);
  auto type = VectorType::get(tokens / 2, builder.getF32Type());
  Value scores = TmemLoadOp::create(builder, loc, type, products.getScores(),
                                    frame.index(0), half);
  return SmallVector<Value>(
      vector::ToElementsOp::create(builder, loc, scores).getResults());
}

void TensorSums::addColumns(ArrayRef<Fragment> weights, Value values,
                            Value adds) const {
  TmemStoreOp::create(builder, loc, TensorCores::join(frame, weights, lane),
                      products.getWeights(), frame.index(0), half);
  products.addColumns(values, adds);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

int64_t TensorSums::getColumns() const {
  return std::gcd(values, kMostColumns);
}

Value TensorSums::load(Value column, int64_t count) const {
  auto type = VectorType::get(count / 2, builder.getF32Type());
  return TmemLoadOp::create(builder, loc, type, products.getAcc(), column,
                            half);
}

void TensorSums::store(Value column, ValueRange sums) const {
  auto type =
      VectorType::get(static_cast<int64_t>(sums.size()), builder.getF32Type());
  Value all = vector::FromElementsOp::create(builder, loc, type, sums);
  TmemStoreOp::create(builder, loc, all, products.getAcc(), column, half);
}

void TensorSums::scale(ArrayRef<Value> factors, Value condition) const {
  Type i1 = builder.getI1Type();
  Value ofWarp = NVVM::VoteSyncOp::create(
      builder, loc, i1, frame.i32(-1), condition,
      NVVM::VoteSyncKindAttr::get(builder.getContext(),
                                  NVVM::VoteSyncKind::any));
  frame.runIf(ofWarp, [&] {
    products.forColumns(kFewColumns, [&](Value column, int64_t count) {
      auto sums =
          vector::ToElementsOp::create(builder, loc, load(column, count));
      SmallVector<Value> scaled;
      for (auto [i, sum] : llvm::enumerate(sums.getResults()))
        scaled.push_back(
            arith::MulFOp::create(builder, loc, sum, factors[i / 2 % 2]));
      store(column, scaled);
    });
  });
}

void TensorSums::forColumns(
    Value hasProducts,
    function_ref<void(Value column, ValueRange sums)> body) const {
  products.forColumns(kMostColumns, [&](Value column, int64_t count) {
    auto type = VectorType::get(count / 2, builder.getF32Type());
    Value all = frame.selectIf(
        hasProducts, [&] { return load(column, count); },
        [&]() -> Value {
          return arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(type));
        });
    auto sums = vector::ToElementsOp::create(builder, loc, all);
    body(column, sums.getResults());
  });
}
