//===- TensorSums.cpp - Products of tiles into tensor memory --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorSums.h"

#include "AttentionChoices.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// The tiles, in the order of their allocation.
constexpr unsigned kScores = 0, kWeights = 1, kSums = 2;
/// The phases of the barrier: of a tile of tokens, scores come before sums.
constexpr bool kOfScores = false, kOfSums = true;
/// Warps that reach all lanes.
constexpr int64_t kWarpsOfLanes = 4;
/// Columns of sums that a lane has in registers at once: beside scores, and at
/// the end.
constexpr int64_t kFewColumns = 32, kMostColumns = 64;

TensorSums::TensorSums(const Frame &frame, int64_t rows, int64_t tokens,
                       int64_t values, FloatType lane)
    : frame(frame), builder(frame.builder), loc(frame.loc), rows(rows),
      tokens(tokens), values(values), lane(lane) {}

Value TensorSums::getFirstRow(const Frame &frame, int64_t rows, Value warp) {
  int64_t halves = rows / (kWarpsOfLanes * kRowsOfWarp);
  Value row = frame.mul(frame.rem(warp, kWarpsOfLanes), halves * kRowsOfWarp);
  return frame.add(row, frame.mul(frame.div(warp, kWarpsOfLanes), kRowsOfWarp));
}

void TensorSums::allocate(Value thread) {
  constexpr int64_t warp = 32;
  isIssuer = frame.equal(thread, frame.index(0));
  if (rows == TmemTileType::kMemoryLanes)
    half = frame.div(thread, warp * kWarpsOfLanes);
  MLIRContext *context = builder.getContext();
  Type f32 = builder.getF32Type();
  Type types[] = {TmemTileType::get(context, rows, tokens, f32),
                  TmemTileType::get(context, rows, tokens, lane),
                  TmemTileType::get(context, rows, values, f32)};
  llvm::append_range(tiles,
                     TmemAllocOp::create(builder, loc, types).getTiles());
  auto shared =
      gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
  auto type = nvgpu::MBarrierGroupType::get(context, shared, /*numBarriers=*/1);
  barriers = nvgpu::MBarrierCreateOp::create(builder, loc, type);
  frame.runIf(isIssuer, [&] {
    nvgpu::MBarrierInitOp::create(builder, loc, barriers, frame.index(1),
                                  frame.index(0), /*predicate=*/Value());
  });
}

TypedValue<TmemTileType> TensorSums::getTile(unsigned number) const {
  return cast<TypedValue<TmemTileType>>(tiles[number]);
}

void TensorSums::issue(function_ref<void()> start) const {
  frame.runIf(isIssuer, [&] {
    start();
    TmemCommitOp::create(builder, loc, barriers, frame.index(0));
  });
}

void TensorSums::wait(bool parity) const {
  constexpr int64_t nanoseconds = 10'000'000;
  Value phase = arith::ConstantIntOp::create(builder, loc, parity, /*width=*/1);
  nvgpu::MBarrierTryWaitParityOp::create(
      builder, loc, barriers, phase, frame.index(nanoseconds), frame.index(0));
}

SmallVector<Value>
TensorSums::multiplyRows(Value queries, Value keys,
                         function_ref<void()> meanwhile) const {
  Value zero = frame.index(0);
  issue([&] {
    TmemMmaOp::create(builder, loc, queries, zero, zero, keys, zero, zero,
                      getTile(kScores), /*add=*/Value(), /*k=*/IntegerAttr());
  });
  meanwhile();
  wait(kOfScores);
  auto type = VectorType::get(tokens / 2, builder.getF32Type());
  Value scores =
      TmemLoadOp::create(builder, loc, type, getTile(kScores), zero, half);
  return SmallVector<Value>(
      vector::ToElementsOp::create(builder, loc, scores).getResults());
}

void TensorSums::addColumns(ArrayRef<Fragment> weights, Value values,
                            Value adds) const {
  Value zero = frame.index(0);
  TmemStoreOp::create(builder, loc, TensorCores::join(frame, weights, lane),
                      getTile(kWeights), zero, half);
  gpu::BarrierOp::create(builder, loc);
  issue([&] {
    TmemMmaOp::create(builder, loc, getTile(kWeights), /*a_row=*/Value(),
                      /*a_column=*/Value(), values, zero, zero, getTile(kSums),
                      adds, /*k=*/IntegerAttr(), Major::K, Major::MN);
  });
  wait(kOfSums);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

int64_t TensorSums::getColumns() const {
  return std::gcd(values, kMostColumns);
}

void TensorSums::loop(int64_t step,
                      function_ref<void(Value column)> body) const {
  auto loop = scf::ForOp::create(builder, loc, frame.index(0),
                                 frame.index(values), frame.index(step));
  disableUnrolling(loop);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value TensorSums::load(Value column, int64_t count) const {
  auto type = VectorType::get(count / 2, builder.getF32Type());
  return TmemLoadOp::create(builder, loc, type, getTile(kSums), column, half);
}

void TensorSums::store(Value column, ValueRange sums) const {
  auto type =
      VectorType::get(static_cast<int64_t>(sums.size()), builder.getF32Type());
  Value all = vector::FromElementsOp::create(builder, loc, type, sums);
  TmemStoreOp::create(builder, loc, all, getTile(kSums), column, half);
}

void TensorSums::scale(ArrayRef<Value> factors, Value condition) const {
  Type i1 = builder.getI1Type();
  Value ofWarp = NVVM::VoteSyncOp::create(
      builder, loc, i1, frame.i32(-1), condition,
      NVVM::VoteSyncKindAttr::get(builder.getContext(),
                                  NVVM::VoteSyncKind::any));
  int64_t count = std::gcd(values, kFewColumns);
  frame.runIf(ofWarp, [&] {
    loop(count, [&](Value column) {
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
  auto type = VectorType::get(getColumns() / 2, builder.getF32Type());
  loop(getColumns(), [&](Value column) {
    Value all = frame.selectIf(
        hasProducts, [&] { return load(column, getColumns()); },
        [&]() -> Value {
          return arith::ConstantOp::create(builder, loc,
                                           builder.getZeroAttr(type));
        });
    auto sums = vector::ToElementsOp::create(builder, loc, all);
    body(column, sums.getResults());
  });
}
