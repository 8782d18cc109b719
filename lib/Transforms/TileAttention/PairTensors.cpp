//===- PairTensors.cpp - Products of two thread blocks --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairTensors.h"

#include "../PlanAttention/TileSizes.h"
#include "TensorProducts.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The phases of the barrier: in a tile of tokens, scores precede the
/// accumulator.
constexpr bool kScoresPhase = false, kAccPhase = true;

void PairTensors::allocate(Value thread, Value rank) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  MLIRContext *context = builder.getContext();
  auto shared =
      gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
  barriers = nvgpu::MBarrierCreateOp::create(
      builder, loc,
      nvgpu::MBarrierGroupType::get(context, shared, /*numBarriers=*/1));
  Value isFirst = frame.equal(thread, frame.index(0));
  isIssuer = arith::AndIOp::create(builder, loc, isFirst,
                                   frame.equal(rank, frame.index(0)));
  frame.runIf(isFirst, [&] {
    nvgpu::MBarrierInitOp::create(builder, loc, barriers, frame.index(1),
                                  frame.index(0), /*predicate=*/Value());
    NVVM::FenceMbarrierInitOp::create(builder, loc);
  });
  Type f32 = builder.getF32Type();
  constexpr int64_t lanes = TmemTileType::kMemoryLanes;
  Type types[] = {TmemTileType::get(context, lanes, tokens / 2, f32),
                  TmemTileType::get(context, lanes, values / 2, f32)};
  llvm::append_range(
      tiles,
      TmemAllocOp::create(builder, loc, types, /*pair=*/true).getTiles());
}

void PairTensors::syncPair() const {
  ClusterBarrierOp::create(frame.builder, frame.loc, kBlocksOfPair);
}

void PairTensors::run(bool parity, function_ref<void()> start) const {
  Value zero = frame.index(0);
  frame.runIf(isIssuer, [&] {
    start();
    TmemCommitOp::create(frame.builder, frame.loc, barriers, zero,
                         /*pair=*/true);
  });
  waitForProducts(frame, barriers, parity);
}

void PairTensors::multiplyRows(Value queries, Value keys) const {
  Value zero = frame.index(0);
  run(kScoresPhase, [&] {
    TmemMmaOp::create(frame.builder, frame.loc, queries, zero, zero, keys, zero,
                      zero, getScores(), /*add=*/Value(), /*k=*/IntegerAttr(),
                      Major::K, Major::K, /*pair=*/true);
  });
}

// Probs of the second half of the tokens follow the rows of the first half.
void PairTensors::addColumns(Value probs, Value valueTile, Value adds) const {
  OpBuilder &builder = frame.builder;
  Value zero = frame.index(0);
  Value always =
      arith::ConstantOp::create(builder, frame.loc, builder.getBoolAttr(true));
  IntegerAttr k = builder.getI64IntegerAttr(tokens / 2);
  run(kAccPhase, [&] {
    for (int64_t half = 0; half < 2; ++half)
      TmemMmaOp::create(builder, frame.loc, probs,
                        frame.index(half * kRowsOfWarpgroup), zero, valueTile,
                        frame.index(half * tokens / 2), zero, getAcc(),
                        half ? always : adds, k, Major::K, Major::MN,
                        /*pair=*/true);
  });
}

void PairTensors::forColumns(
    int64_t most, function_ref<void(Value column, int64_t count)> body) const {
  forAccColumns(frame, values / 2, most, body);
}
