//===- FragmentChecks.cpp - Check code with fragments ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentChecks.h"

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

static bool isFragment(Type type) {
  return isa<FragmentType, InFlightType>(type);
}

bool kvcache::usesFragments(Operation *op) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return llvm::any_of(op->getOperandTypes(), isFragment) ||
         llvm::any_of(op->getResultTypes(), isFragment) ||
         (function && (llvm::any_of(function.getArgumentTypes(), isFragment) ||
                       llvm::any_of(function.getResultTypes(), isFragment)));
}

/// Checks that only threads of a team have fragments, and that only functions
/// that are called take them.
static LogicalResult checkPlace(Operation *op) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (kernel && kernel.isKernel() &&
      llvm::any_of(kernel.getArgumentTypes(), isFragment))
    return op->emitOpError("expects no fragments as arguments of a kernel");
  if (isa<OpaqueThreadOp>(op) && !isInGPUCode(op))
    return op->emitOpError("expects GPU code");
  if (usesFragments(op) && !isInGPUCode(op))
    return op->emitOpError("with fragments expects GPU code");
  return success();
}

/// Whether an op may have a product in flight as an operand: it waits for it,
/// adds to it, or passes it on.
static bool mayTakeInFlight(Operation *op) {
  return isa<FragmentWaitOp, FragmentMmaOp, RegionBranchOpInterface,
             BranchOpInterface, CallOpInterface>(op) ||
         op->hasTrait<OpTrait::ReturnLike>() || isa<YieldOp>(op);
}

static LogicalResult checkProducts(Operation *op) {
  if (!llvm::any_of(op->getOperandTypes(), llvm::IsaPred<InFlightType>) ||
      mayTakeInFlight(op))
    return success();
  return op->emitOpError("uses a product in flight, whose registers are not "
                         "ready before 'kvcache.fragment_wait'");
}

//===----------------------------------------------------------------------===//
// Reductions between warps
//===----------------------------------------------------------------------===//

/// Checks that the team is all of the block.
static LogicalResult checkTeam(ReduceOp op) {
  int64_t team = LayoutDigits::get(op.getSource().getType()).countThreads();
  int64_t threads = getKnownThreads(op).value_or(team);
  if (threads == team)
    return success();
  return op.emitOpError("expects a block of ")
         << team << " threads, which exchange through 'scratch', got "
         << threads;
}

/// Whether an op surely contains no barrier.
static bool hasNoBarrier(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return !reduce.getScratch();
  return isMemoryEffectFree(op) || isa<TileLoadOp, TileStoreOp, FragmentLoadOp,
                                       FragmentStoreOp, OpaqueThreadOp>(op);
}

/// Checks that no `reduce` stores into `scratch` before a barrier: none after
/// the op, nor in the next iteration of its loop. (C6)
static LogicalResult checkNextStore(ReduceOp op) {
  bool isLoop = isa<scf::ForOp>(op->getParentOp());
  for (Operation *next = op->getNextNode();; next = next->getNextNode()) {
    if (!next && isLoop)
      next = &op->getBlock()->front();
    if (!next)
      return success();
    auto other = dyn_cast<ReduceOp>(next);
    if (other && other.getScratch() == op.getScratch())
      return other.emitOpError("expects a barrier after the last 'reduce' "
                               "through 'scratch'");
    if (!hasNoBarrier(next))
      return success();
  }
}

static LogicalResult checkReduction(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || !reduce.getScratch())
    return success();
  return failure(failed(checkTeam(reduce)) || failed(checkNextStore(reduce)));
}

LogicalResult kvcache::checkFragments(Operation *code) {
  WalkResult result = code->walk([](Operation *op) -> WalkResult {
    return failure(failed(checkPlace(op)) || failed(checkProducts(op)) ||
                   failed(checkReduction(op)));
  });
  return failure(result.wasInterrupted());
}
