//===- CheckHostCode.cpp - Rules for host code that works on a GPU --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHECKHOSTCODE
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the memory that a value is a view of.
static Value getMemory(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Fails if an op of the host reads or writes memory that is passed to a public
/// function.
static LogicalResult checkAccesses(Operation *op, func::FuncOp function) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || isa_and_nonnull<gpu::GPUDialect>(op->getDialect()))
    return success();
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (const MemoryEffects::EffectInstance &effect : instances) {
    Value value = effect.getValue();
    if (!value ||
        !isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect()))
      continue;
    auto argument = dyn_cast<BlockArgument>(getMemory(value));
    if (!argument || argument.getOwner() != &function.front() ||
        !isa<MemRefType>(argument.getType()))
      continue;
    unsigned index = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(
        index, KVCacheDialect::kArgNameAttr);
    return op->emitOpError("accesses memory of the device on the host: "
                           "argument ")
           << index << (name ? " ('" + name.str() + "')" : "") << " of @"
           << function.getName()
           << "; access it in a kernel, or copy it with 'gpu.memcpy'";
  }
  return success();
}

/// Returns why a call that executes `op` can't be captured in a CUDA graph;
/// empty if it can.
static std::string getObstacle(Operation *op) {
  if (auto wait = dyn_cast<gpu::WaitOp>(op);
      wait && !wait.getAsyncToken() && !wait.getAsyncDependencies().empty())
    return "waits for the stream";
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        op, call.getCalleeAttr());
    return callee && callee.isExternal() ? "calls a function that is not known"
                                         : "";
  }
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return "";
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (const MemoryEffects::EffectInstance &effect : instances) {
    bool isOnStack = isa<SideEffects::AutomaticAllocationScopeResource>(
        effect.getResource());
    if (isa<MemoryEffects::Allocate>(effect.getEffect()) && !isOnStack)
      return "allocates memory";
    if (isa<MemoryEffects::Free>(effect.getEffect()) && !isOnStack)
      return "frees memory";
  }
  return "";
}

namespace {
struct CheckHostCode : kvcache::impl::CheckHostCodeBase<CheckHostCode> {
  using CheckHostCodeBase::CheckHostCodeBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(check(function)))
        signalPassFailure();
  }

private:
  /// Reports all that is wrong in a function.
  LogicalResult check(func::FuncOp function) {
    bool isValid = true;
    function.walk([&](Operation *op) {
      if (function.isPublic() && failed(checkAccesses(op, function)))
        isValid = false;
      std::string obstacle = capturable ? getObstacle(op) : "";
      if (obstacle.empty())
        return;
      isValid = false;
      op->emitOpError(obstacle)
          << ", and @" << function.getName()
          << " is to be captured in a CUDA graph: expects only launches, and "
             "copies on the stream";
    });
    return success(isValid);
  }
};
} // namespace
