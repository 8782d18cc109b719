//===- ProductChecks.cpp - Check products in flight -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductChecks.h"

#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/PipeOps.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Uses of products
//===----------------------------------------------------------------------===//

/// Whether an op may have a product in flight as an operand: it waits for it,
/// adds to it, or passes it on.
static bool mayTakeInFlight(Operation *op) {
  return isa<FragmentWaitOp, FragmentMmaOp, RegionBranchOpInterface,
             BranchOpInterface, CallOpInterface>(op) ||
         op->hasTrait<OpTrait::ReturnLike>() || isa<YieldOp>(op);
}

/// Whether a use is inside a loop that the value is defined outside of.
static bool isRepeated(OpOperand &use) {
  Region *definition = use.get().getParentRegion();
  for (Region *region = use.getOwner()->getParentRegion(); region != definition;
       region = region->getParentRegion())
    if (isa<LoopLikeOpInterface>(region->getParentOp()))
      return true;
  return false;
}

/// Whether one path may execute two ops.
static bool areOnOnePath(Operation *lhs, Operation *rhs,
                         DominanceInfo &dominance) {
  if (insideMutuallyExclusiveRegions(lhs, rhs))
    return false;
  Region *common = lhs->getParentRegion();
  while (!common->isAncestor(rhs->getParentRegion()))
    common = common->getParentRegion();
  Operation *first = common->findAncestorOpInRegion(*lhs);
  Operation *second = common->findAncestorOpInRegion(*rhs);
  return dominance.dominates(first, second) ||
         dominance.dominates(second, first);
}

/// Checks that a product has one use on each path: a second one would copy
/// registers that an instruction still writes.
static LogicalResult checkUses(Value product, DominanceInfo &dominance) {
  auto refuse = [](OpOperand &use) {
    return use.getOwner()->emitOpError(
        "expects the only use of a product in flight");
  };
  for (OpOperand &use : product.getUses()) {
    if (!mayTakeInFlight(use.getOwner()))
      return use.getOwner()->emitOpError(
          "uses a product in flight, whose registers are not ready before "
          "'kvcache.fragment_wait'");
    if (isRepeated(use))
      return refuse(use);
    for (OpOperand &other : product.getUses())
      if (&use != &other &&
          areOnOnePath(use.getOwner(), other.getOwner(), dominance))
        return refuse(use);
  }
  return success();
}

/// Checks that only products use a fragment of A of `wgmma` before the wait.
static LogicalResult checkFragmentOfA(FragmentMmaOp op) {
  if (!op.isWgmma() || op.getTileA())
    return success();
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (isa<FragmentWaitOp>(next) &&
        llvm::is_contained(next->getOperands(), op.getResult()))
      return success();
    if (!isa<FragmentMmaOp>(next) &&
        llvm::is_contained(next->getOperands(), op.getA()))
      return next->emitOpError("uses the fragment 'a' of a product in flight, "
                               "before 'kvcache.fragment_wait'");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Slots of pipes
//===----------------------------------------------------------------------===//

/// Whether a tile is one of the slots that a `consume` has.
static bool isSlot(Value tile, ConsumeOp consume) {
  return llvm::is_contained(consume.getBody().getArguments(), tile);
}

/// Whether a product in flight reads a slot of a `consume`.
static bool readsSlot(Value product, ConsumeOp consume) {
  Operation *op = product.getDefiningOp();
  if (auto mma = dyn_cast_if_present<FragmentMmaOp>(op)) {
    Value accumulator = mma.getAccumulator();
    return isSlot(mma.getA(), consume) || isSlot(mma.getB(), consume) ||
           (accumulator && isa<InFlightType>(accumulator.getType()) &&
            readsSlot(accumulator, consume));
  }
  if (!op)
    return false;
  unsigned number = cast<OpResult>(product).getResultNumber();
  return llvm::any_of(op->getRegions(), [&](Region &region) {
    return llvm::any_of(region, [&](Block &block) {
      Operation *yield = block.getTerminator();
      return yield->getNumOperands() == op->getNumResults() &&
             readsSlot(yield->getOperand(number), consume);
    });
  });
}

/// Checks that the region of a `consume` waits for products of its slots, which
/// are free after it.
static LogicalResult checkConsume(ConsumeOp consume) {
  Operation *yield = consume.getBody().front().getTerminator();
  for (Value value : yield->getOperands())
    if (isa<InFlightType>(value.getType()) && readsSlot(value, consume))
      return yield->emitOpError("expects no product in flight that reads a "
                                "tile of its 'kvcache.consume'");
  return success();
}

LogicalResult kvcache::checkProducts(Operation *code) {
  DominanceInfo dominance(code);
  auto checkAll = [&](ValueRange values) {
    return success(llvm::all_of(values, [&](Value value) {
      return !isa<InFlightType>(value.getType()) ||
             succeeded(checkUses(value, dominance));
    }));
  };
  WalkResult result = code->walk([&](Operation *op) -> WalkResult {
    if (failed(checkAll(op->getResults())))
      return failure();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(checkAll(block.getArguments())))
          return failure();
    if (auto product = dyn_cast<FragmentMmaOp>(op))
      return checkFragmentOfA(product);
    if (auto consume = dyn_cast<ConsumeOp>(op))
      return checkConsume(consume);
    return success();
  });
  return failure(result.wasInterrupted());
}
