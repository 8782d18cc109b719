//===- Blocks.cpp - Threads of a block, and their barriers ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// BlockBuilder
//===----------------------------------------------------------------------===//

Threads BlockBuilder::getAll() const {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  if (!isInGPUCode(parent))
    return {index(0), index(1)};
  std::optional<int64_t> size = getKnownThreads(parent);
  return {kvcache::getThread(*this),
          size ? index(*size) : kvcache::countThreads(*this)};
}

Value kvcache::getFromLane(const IndexBuilder &b, Value value, Value lane) {
  Value shuffled = NVVM::ShflOp::create(
      b.builder, b.loc, b.builder.getI32Type(), b.i32(-1), value, b.toI32(lane),
      b.i32(BlockBuilder::kWarp - 1), NVVM::ShflKind::idx,
      /*return_value_and_is_valid=*/UnitAttr());
  return arith::IndexCastOp::create(b.builder, b.loc, b.builder.getIndexType(),
                                    shuffled);
}

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

void kvcache::emitWait(const IndexBuilder &b, Barrier barrier, Value parity,
                       const Chip &chip, bool isCluster) {
  auto scope =
      isCluster ? NVVM::MemScopeKind::CLUSTER : NVVM::MemScopeKind::CTA;
  Value pointer =
      getBarrierPointer(b.builder, b.loc, barrier.group, barrier.index);
  auto isPending = [&](OpBuilder &builder, Location loc, ValueRange) {
    // Threads that wait on Hopper sleep; Ampere has only the test.
    Value isDone;
    Type i1 = builder.getI1Type();
    if (chip.has(Feature::TMA))
      isDone = NVVM::MBarrierTryWaitOp::create(
          builder, loc, i1, pointer, parity, /*ticks=*/Value(), scope);
    else
      isDone =
          NVVM::MBarrierTestWaitOp::create(builder, loc, i1, pointer, parity);
    Value isOpen = arith::XOrIOp::create(
        builder, loc, isDone,
        arith::ConstantIntOp::create(builder, loc, /*value=*/1, /*width=*/1));
    scf::ConditionOp::create(builder, loc, isOpen, ValueRange());
  };
  scf::WhileOp::create(b.builder, b.loc, TypeRange(), ValueRange(), isPending,
                       [](OpBuilder &builder, Location loc, ValueRange) {
                         scf::YieldOp::create(builder, loc);
                       });
}

void kvcache::emitArrive(const IndexBuilder &b, Barrier barrier) {
  nvgpu::MBarrierArriveOp::create(
      b.builder, b.loc, nvgpu::MBarrierTokenType::get(b.builder.getContext()),
      barrier.group, barrier.index);
}

void kvcache::emitArriveAtBlock(const IndexBuilder &b, Barrier barrier,
                                Value rank) {
  Value pointer =
      getBarrierPointer(b.builder, b.loc, barrier.group, barrier.index);
  auto type = LLVM::LLVMPointerType::get(
      b.builder.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  Value there =
      NVVM::MapaOp::create(b.builder, b.loc, type, pointer, b.toI32(rank));
  NVVM::MBarrierArriveOp::create(b.builder, b.loc, /*res=*/Type(), there,
                                 /*count=*/Value(),
                                 NVVM::MemScopeKind::CLUSTER);
}

void kvcache::emitClusterBarrier(const IndexBuilder &b) {
  NVVM::ClusterArriveOp::create(b.builder, b.loc, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b.builder, b.loc, /*aligned=*/UnitAttr());
}

bool kvcache::hasProducts(Operation *op) {
  return op
      ->walk([](Operation *each) {
        return isa<MmaOp, TmemMmaOp>(each) ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

void kvcache::emitProxyFence(const IndexBuilder &b) {
  NVVM::FenceProxyOp::create(
      b.builder, b.loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.builder.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

void kvcache::emitGlobalProxyFence(const IndexBuilder &b) {
  NVVM::FenceProxyOp::create(b.builder, b.loc, NVVM::ProxyKind::async_global,
                             /*space=*/NVVM::SharedSpaceAttr());
}
