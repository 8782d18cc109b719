//===- KernelSetup.cpp - What a kernel does first for its copies
//-------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSetup.h"

#include "kvcache/IR/KVCache.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

void KernelSetup::start() {
  if (inOneThread)
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  BlockBuilder b(builder, kernel.getLoc());
  Value isFirst = b.equal(b.getAll().thread, b.index(0));
  inOneThread = scf::IfOp::create(builder, b.loc, isFirst);
  gpu::BarrierOp::create(builder, b.loc);
  if (!chip.has(Feature::TMA))
    return;
  // Copies see the barriers, and find their descriptors in the cache.
  builder.setInsertionPointToStart(inOneThread.thenBlock());
  NVVM::FenceMbarrierInitOp::create(builder, b.loc);
  // Attributions come after them, and have no attributes.
  unsigned numArguments = kernel.getFunctionType().getNumInputs();
  for (BlockArgument argument :
       kernel.getArguments().take_front(numArguments)) {
    bool isOurs = kernel.getArgAttr(argument.getArgNumber(),
                                    KVCacheDialect::kDescriptorAttr) != nullptr;
    if (isOurs)
      TMAPrefetchOp::create(builder, b.loc,
                            cast<TypedValue<TMATileType>>(Value(argument)));
  }
}

TypedValue<nvgpu::MBarrierGroupType>
KernelSetup::createBarriers(int64_t number) {
  start();
  OpBuilder builder(inOneThread);
  auto shared = gpu::AddressSpaceAttr::get(builder.getContext(),
                                           gpu::AddressSpace::Workgroup);
  auto type =
      nvgpu::MBarrierGroupType::get(builder.getContext(), shared, number);
  return nvgpu::MBarrierCreateOp::create(builder, kernel.getLoc(), type);
}

void KernelSetup::initialize(TypedValue<nvgpu::MBarrierGroupType> barriers,
                             int64_t index,
                             function_ref<Value(const BlockBuilder &b)> count) {
  OpBuilder builder = OpBuilder::atBlockBegin(inOneThread.thenBlock());
  // After those before it, and before the fence.
  for (Operation &op : *inOneThread.thenBlock())
    if (isa<nvgpu::MBarrierInitOp>(op))
      builder.setInsertionPointAfter(&op);
  BlockBuilder b(builder, kernel.getLoc());
  Value number = count(b);
  nvgpu::MBarrierInitOp::create(builder, b.loc, barriers, number,
                                b.index(index), /*predicate=*/Value());
}

Value KernelSetup::createVariable() {
  start();
  OpBuilder builder(inOneThread);
  IndexBuilder b(builder, kernel.getLoc());
  Value variable = memref::AllocaOp::create(
      builder, b.loc, MemRefType::get({}, builder.getI32Type()));
  memref::StoreOp::create(builder, b.loc, b.i32(0), variable, ValueRange());
  return variable;
}

Value KernelSetup::getIsFirstWarp() {
  if (isFirstWarp)
    return isFirstWarp;
  start();
  OpBuilder builder(inOneThread);
  BlockBuilder b(builder, kernel.getLoc());
  Value warp = b.toI32(b.div(b.getAll().thread, b.index(BlockBuilder::kWarp)));
  // ptxas doesn't see that a warp's number is uniform: the shuffle says so.
  isFirstWarp = b.equal(getFromLane(b, warp, b.index(0)), b.index(0));
  return isFirstWarp;
}

void KernelSetup::runInFirstWarp(const BlockBuilder &b,
                                 function_ref<void(Threads lanes)> body) {
  Threads all = b.getAll();
  Value warp = b.index(BlockBuilder::kWarp);
  b.runIf(getIsFirstWarp(),
          [&] { body({b.rem(all.thread, warp), b.min(all.count, warp)}); });
}

void KernelSetup::runInIssuer(const BlockBuilder &b,
                              function_ref<void(const Issuer &issuer)> body) {
  Type i1 = b.builder.getI1Type();
  std::optional<int64_t> size = BlockBuilder::getKnownSize(kernel);
  // Election and shuffles take a whole warp.
  if (size && *size < BlockBuilder::kWarp) {
    Value isFirst = b.equal(b.getAll().thread, b.index(0));
    return b.runIf(isFirst, [&] {
      body({/*numLanes=*/1, b.index(0),
            arith::ConstantIntOp::create(b.builder, b.loc, i1, /*value=*/1)});
    });
  }
  // All lanes of a warp that may lack some compute the same.
  runInFirstWarp(b, [&](Threads lanes) {
    Value isElected = NVVM::ElectSyncOp::create(b.builder, b.loc, i1, Value());
    body({size ? BlockBuilder::kWarp : 1, lanes.thread, isElected});
  });
}
