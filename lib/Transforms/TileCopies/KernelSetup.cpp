//===- KernelSetup.cpp - Barriers at the start of a kernel ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSetup.h"

#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Marks the branch of the one thread, and the comparison of the first warp.
static constexpr StringLiteral kBranchMark = "kvcache.setup";
static constexpr StringLiteral kFirstWarpMark = "kvcache.first_warp";

/// The op with a mark in the entry block of a function, or null.
static Operation *findMarked(FunctionOpInterface function, StringRef mark) {
  if (function.isExternal())
    return nullptr;
  for (Operation &op : function.getFunctionBody().front())
    if (op.hasAttr(mark))
      return &op;
  return nullptr;
}

void KernelSetup::finish(FunctionOpInterface function) {
  for (StringRef mark : {kBranchMark, kFirstWarpMark})
    if (Operation *op = findMarked(function, mark))
      op->removeAttr(mark);
}

scf::IfOp KernelSetup::findBranch() {
  return dyn_cast_or_null<scf::IfOp>(findMarked(kernel, kBranchMark));
}

/// Whether copies need a descriptor only after the last valid row.
static bool isOnlyForZeros(BlockArgument descriptor) {
  return llvm::all_of(descriptor.getUsers(), [&](Operation *user) {
    auto copy = dyn_cast<AsyncLoadTileOp>(user);
    return copy && copy.getZeros() == descriptor;
  });
}

scf::IfOp KernelSetup::start() {
  if (scf::IfOp branch = findBranch())
    return branch;
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  BlockBuilder b(builder, kernel.getLoc());
  Value isFirst = b.equal(b.getAll().thread, b.index(0));
  auto branch = scf::IfOp::create(builder, b.loc, isFirst);
  branch->setAttr(kBranchMark, builder.getUnitAttr());
  gpu::BarrierOp::create(builder, b.loc);
  if (!chip.has(Feature::TMA))
    return branch;
  // Copies see the barriers, and find their descriptors in the cache.
  builder.setInsertionPointToStart(branch.thenBlock());
  NVVM::FenceMbarrierInitOp::create(builder, b.loc);
  // Attributions come after them, and have no attributes.
  unsigned numArguments = kernel.getFunctionType().getNumInputs();
  for (BlockArgument argument :
       kernel.getArguments().take_front(numArguments)) {
    bool isOurs = kernel.getArgAttr(argument.getArgNumber(),
                                    KVCacheDialect::kDescriptorAttr) != nullptr;
    if (isOurs && !isOnlyForZeros(argument))
      TMAPrefetchOp::create(builder, b.loc,
                            cast<TypedValue<TMATileType>>(Value(argument)));
  }
  return branch;
}

TypedValue<nvgpu::MBarrierGroupType>
KernelSetup::createBarriers(int64_t number) {
  OpBuilder builder(start());
  auto shared = gpu::AddressSpaceAttr::get(builder.getContext(),
                                           gpu::AddressSpace::Workgroup);
  auto type =
      nvgpu::MBarrierGroupType::get(builder.getContext(), shared, number);
  return nvgpu::MBarrierCreateOp::create(builder, kernel.getLoc(), type);
}

void KernelSetup::initialize(TypedValue<nvgpu::MBarrierGroupType> barriers,
                             int64_t index,
                             function_ref<Value(const BlockBuilder &b)> count) {
  Block *block = start().thenBlock();
  OpBuilder builder = OpBuilder::atBlockBegin(block);
  // After the barriers before it, and before the fence.
  for (Operation &op : *block)
    if (isa<nvgpu::MBarrierInitOp>(op))
      builder.setInsertionPointAfter(&op);
  BlockBuilder b(builder, kernel.getLoc());
  Value number = count(b);
  nvgpu::MBarrierInitOp::create(builder, b.loc, barriers, number,
                                b.index(index), /*predicate=*/Value());
}

void KernelSetup::meetInCluster() {
  auto barrier = dyn_cast<gpu::BarrierOp>(start()->getNextNode());
  // Another pass has done it.
  if (!barrier)
    return;
  OpBuilder builder(barrier);
  emitClusterBarrier(IndexBuilder(builder, barrier.getLoc()));
  barrier.erase();
  kernel.walk([&](gpu::ReturnOp end) {
    builder.setInsertionPoint(end);
    emitClusterBarrier(IndexBuilder(builder, end.getLoc()));
  });
}

Value KernelSetup::createVariable() {
  OpBuilder builder(start());
  IndexBuilder b(builder, kernel.getLoc());
  Value variable = memref::AllocaOp::create(
      builder, b.loc, MemRefType::get({}, builder.getI32Type()));
  memref::StoreOp::create(builder, b.loc, b.i32(0), variable, ValueRange());
  return variable;
}

Value KernelSetup::getIsFirstWarp() {
  if (auto known =
          dyn_cast_or_null<arith::CmpIOp>(findMarked(kernel, kFirstWarpMark)))
    return known;
  OpBuilder builder(start());
  BlockBuilder b(builder, kernel.getLoc());
  Value warp = b.toI32(b.div(b.getAll().thread, b.index(BlockBuilder::kWarp)));
  // The shuffle proves to ptxas that the number of the warp is uniform.
  Value isFirst = b.equal(getFromLane(b, warp, b.index(0)), b.index(0));
  isFirst.getDefiningOp()->setAttr(kFirstWarpMark, builder.getUnitAttr());
  return isFirst;
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
  std::optional<int64_t> size = getKnownThreads(kernel);
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
