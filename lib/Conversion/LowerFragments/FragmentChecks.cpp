//===- FragmentChecks.cpp - Check code with fragments ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentChecks.h"

#include "ProductChecks.h"

#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/Threads.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
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

/// Checks that a block of a known size has whole teams.
static LogicalResult checkTeams(Operation *op) {
  std::optional<int64_t> threads = getKnownThreads(op);
  if (!threads)
    return success();
  for (Type type : op->getResultTypes()) {
    auto fragment = dyn_cast<FragmentType>(type);
    if (auto product = dyn_cast<InFlightType>(type))
      fragment = product.getComplete();
    if (!fragment)
      continue;
    int64_t team = LayoutDigits::get(fragment).countThreads();
    if (*threads % team)
      return op->emitOpError("expects a block of a multiple of ")
             << team << " threads, which share a fragment, got " << *threads;
  }
  return success();
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

namespace {
/// The first event of an op: a store into a tile, or a barrier of the block.
struct Event {
  enum Kind { None, Store, Barrier } kind;
  Operation *op;
};
} // namespace

/// Finds the first event of an op without regions. Calls may be barriers.
static Event::Kind classify(Operation *op, Value tile) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reduce.getScratch() == tile ? Event::Store
           : reduce.getScratch()       ? Event::Barrier
                                       : Event::None;
  if (isa<gpu::BarrierOp, CallOpInterface>(op))
    return Event::Barrier;
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(op))
    return barrier.getBarrierId() ? Event::None : Event::Barrier;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects && effects.getEffectOnValue<MemoryEffects::Write>(tile)
             ? Event::Store
             : Event::None;
}

static Event findEvent(Operation *op, Value tile) {
  Event event{Event::None, nullptr};
  op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
    event = {classify(nested, tile), nested};
    return event.kind == Event::None ? WalkResult::advance()
                                     : WalkResult::interrupt();
  });
  return event;
}

/// Finds the first event from an op to the end of its block.
static Event findEventFrom(Operation *op, Value tile) {
  Event event{Event::None, nullptr};
  for (; op && event.kind == Event::None; op = op->getNextNode())
    event = findEvent(op, tile);
  return event;
}

/// Checks that a barrier is between the op and the next store into `scratch`,
/// also in the next iteration of a loop around the op and after it. (C6)
static LogicalResult checkNextStore(ReduceOp op) {
  auto check = [&](const Event &event) {
    if (event.kind != Event::Store)
      return success();
    return LogicalResult(event.op->emitOpError(
        "expects a barrier after the last 'reduce' through 'scratch'"));
  };
  for (Operation *last = op; !isa<FunctionOpInterface>(last);
       last = last->getParentOp()) {
    Event event = findEventFrom(last->getNextNode(), op.getScratch());
    if (event.kind != Event::None)
      return check(event);
    if (isa<LoopLikeOpInterface>(last->getParentOp()) &&
        failed(
            check(findEventFrom(&last->getBlock()->front(), op.getScratch()))))
      return failure();
  }
  return success();
}

static LogicalResult checkReduction(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || !reduce.getScratch())
    return success();
  return failure(failed(checkTeam(reduce)) || failed(checkNextStore(reduce)));
}

LogicalResult kvcache::checkFragments(Operation *code) {
  WalkResult result = code->walk([](Operation *op) -> WalkResult {
    return failure(failed(checkPlace(op)) || failed(checkTeams(op)) ||
                   failed(checkReduction(op)));
  });
  return failure(result.wasInterrupted() || failed(checkProducts(code)));
}
