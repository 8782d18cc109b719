//===- TensorProducts.cpp - Products of tiles into tensor memory ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorProducts.h"

#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// The phases of the barrier: in a tile of tokens, scores precede the
/// accumulator.
constexpr bool kOfScores = false, kOfAcc = true;

void TensorProducts::allocate(Value thread) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  isIssuer = frame.equal(thread, frame.index(0));
  MLIRContext *context = builder.getContext();
  Type f32 = builder.getF32Type();
  Type types[] = {TmemTileType::get(context, rows, tokens, f32),
                  TmemTileType::get(context, rows, tokens, prob),
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

void TensorProducts::issue(function_ref<void()> start) const {
  frame.runIf(isIssuer, [&] {
    start();
    TmemCommitOp::create(frame.builder, frame.loc, barriers, frame.index(0));
  });
}

void kvcache::waitForProducts(const Frame &frame, Value barriers, bool parity) {
  constexpr int64_t nanoseconds = 10'000'000;
  Value phase = arith::ConstantIntOp::create(frame.builder, frame.loc, parity,
                                             /*width=*/1);
  nvgpu::MBarrierTryWaitParityOp::create(frame.builder, frame.loc, barriers,
                                         phase, frame.index(nanoseconds),
                                         frame.index(0));
}

void TensorProducts::wait(bool parity) const {
  waitForProducts(frame, barriers, parity);
}

void TensorProducts::multiplyRows(Value queries, Value keys,
                                  function_ref<void()> meanwhile) const {
  Value zero = frame.index(0);
  issue([&] {
    TmemMmaOp::create(frame.builder, frame.loc, queries, zero, zero, keys, zero,
                      zero, getScores(), /*add=*/Value(), /*k=*/IntegerAttr());
  });
  meanwhile();
  wait(kOfScores);
}

void TensorProducts::addColumns(Value values, Value adds) const {
  Value zero = frame.index(0);
  gpu::BarrierOp::create(frame.builder, frame.loc);
  issue([&] {
    TmemMmaOp::create(frame.builder, frame.loc, getProbs(),
                      /*a_row=*/Value(), /*a_column=*/Value(), values, zero,
                      zero, getAcc(), adds, /*k=*/IntegerAttr(), Major::K,
                      Major::MN);
  });
  wait(kOfAcc);
}

void kvcache::forAccColumns(
    const Frame &frame, int64_t columns, int64_t most,
    function_ref<void(Value column, int64_t count)> body) {
  int64_t count = std::gcd(columns, most);
  auto loop = scf::ForOp::create(frame.builder, frame.loc, frame.index(0),
                                 frame.index(columns), frame.index(count));
  disableUnrolling(loop);
  OpBuilder::InsertionGuard guard(frame.builder);
  frame.builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar(), count);
}
