//===- RoleTensors.cpp - Tensor memory of two query tiles -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleTensors.h"

#include "../PlanAttention/TileSizes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

void RoleTensors::allocate(Value thread) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  MLIRContext *context = builder.getContext();
  Type f32 = builder.getF32Type();
  Type types[] = {
      TmemTileType::get(context, kRowsOfTile, kQueryTiles * keys, f32),
      TmemTileType::get(context, kRowsOfTile, kQueryTiles * values, f32)};
  ResultRange tiles = TmemAllocOp::create(builder, loc, types).getTiles();
  scores = tiles[0];
  accs = tiles[1];
  constexpr RoleEdge edges[] = {RoleEdge::Scores, RoleEdge::Probs,
                                RoleEdge::Acc};
  auto shared =
      gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
  barriers = nvgpu::MBarrierCreateOp::create(
      builder, loc,
      nvgpu::MBarrierGroupType::get(context, shared,
                                    std::size(edges) * kQueryTiles));
  frame.runIf(frame.equal(thread, frame.index(0)), [&] {
    for (RoleEdge edge : edges)
      for (int64_t number = 0; number < kQueryTiles; ++number)
        nvgpu::MBarrierInitOp::create(
            builder, loc, barriers,
            frame.index(edge == RoleEdge::Probs ? kWarpgroup / kWarp : 1),
            getBarrier(edge, frame.index(number)), /*predicate=*/Value());
  });
}

TypedValue<TmemTileType> RoleTensors::view(Value both, Value number,
                                           int64_t columns,
                                           TmemTileType type) const {
  return TmemViewOp::create(frame.builder, frame.loc, type, both,
                            frame.mul(number, columns));
}

TypedValue<TmemTileType> RoleTensors::getScores(Value number) const {
  return view(scores, number, keys,
              TmemTileType::get(frame.builder.getContext(), kRowsOfTile, keys,
                                frame.builder.getF32Type()));
}

TypedValue<TmemTileType> RoleTensors::getProbs(Value number) const {
  return view(
      scores, number, keys,
      TmemTileType::get(frame.builder.getContext(), kRowsOfTile, keys, prob));
}

TypedValue<TmemTileType> RoleTensors::getAcc(Value number) const {
  return view(accs, number, values,
              TmemTileType::get(frame.builder.getContext(), kRowsOfTile, values,
                                frame.builder.getF32Type()));
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

Value RoleTensors::getBarrier(RoleEdge edge, Value number) const {
  return frame.add(number,
                   frame.index(static_cast<int64_t>(edge) * kQueryTiles));
}

void RoleTensors::commit(RoleEdge edge, Value number) const {
  TmemCommitOp::create(frame.builder, frame.loc, barriers,
                       getBarrier(edge, number));
}

void RoleTensors::arrive(RoleEdge edge, Value number, Value lane) const {
  NVVM::SyncWarpOp::create(frame.builder, frame.loc, frame.i32(-1));
  frame.runIf(frame.equal(lane, frame.index(0)), [&] {
    nvgpu::MBarrierArriveOp::create(
        frame.builder, frame.loc,
        nvgpu::MBarrierTokenType::get(frame.builder.getContext()), barriers,
        getBarrier(edge, number));
  });
}

void RoleTensors::wait(RoleEdge edge, Value number, Value use) const {
  constexpr int64_t nanoseconds = 10'000'000;
  Value isOdd = frame.equal(frame.rem(use, 2), frame.index(1));
  nvgpu::MBarrierTryWaitParityOp::create(frame.builder, frame.loc, barriers,
                                         isOdd, frame.index(nanoseconds),
                                         getBarrier(edge, number));
}
