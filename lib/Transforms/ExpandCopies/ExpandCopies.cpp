//===- ExpandCopies.cpp - Copies into tiles by target
//------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptors.h"
#include "Expansion.h"

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/IR/CacheShape.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDCOPIES
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// What a function has of copies, in the order of its text.
struct Function {
  explicit Function(FunctionOpInterface op) : op(op), chip(getTargetChip(op)) {
    op.walk([&](Operation *nested) {
      if (isa<AsyncLoadTileOp, AsyncGatherTileOp>(nested)) {
        copies.push_back(nested);
        if (!isa<ProduceOp>(nested->getParentOp()))
          copiesOutsideOfPipes.push_back(nested);
      }
      if (auto wait = dyn_cast<WaitOp>(nested))
        waits.push_back(wait);
      else if (auto pipe = dyn_cast<PipeOp>(nested))
        pipes.push_back(pipe);
    });
    auto gpuFunction = dyn_cast<gpu::GPUFuncOp>(op.getOperation());
    if (gpuFunction && gpuFunction.isKernel() && chip)
      kernel = gpuFunction;
  }

  FunctionOpInterface op;
  const Chip *chip;
  SmallVector<Operation *> copies, copiesOutsideOfPipes;
  SmallVector<WaitOp> waits;
  SmallVector<PipeOp> pipes;
  /// The same, if it is a kernel with a target.
  gpu::GPUFuncOp kernel;
};

struct ExpandCopies : kvcache::impl::ExpandCopiesBase<ExpandCopies> {
  void runOnOperation() override {
    std::vector<Function> functions;
    getOperation().walk(
        [&](FunctionOpInterface op) { functions.emplace_back(op); });
    KernelLaunches launches(getOperation());
    // A kernel and its clones for other chips take the same arguments.
    llvm::MapVector<std::pair<StringAttr, StringAttr>, SmallVector<Function *>>
        groups;
    for (Function &function : functions)
      groups[getKey(function)].push_back(&function);
    for (auto &[key, group] : groups)
      if (failed(expand(group, launches)))
        return signalPassFailure();
  }

private:
  /// Names of the original module and of the function.
  static std::pair<StringAttr, StringAttr> getKey(const Function &function) {
    StringAttr module;
    if (auto gpuModule = function.op->getParentOfType<gpu::GPUModuleOp>()) {
      auto original = gpuModule->getAttrOfType<FlatSymbolRefAttr>(
          KVCacheDialect::kCloneOfAttr);
      module = original ? original.getAttr() : gpuModule.getNameAttr();
    }
    return {module, SymbolTable::getSymbolName(function.op)};
  }

  static LogicalResult expand(ArrayRef<Function *> group,
                              const KernelLaunches &launches) {
    SmallVector<gpu::GPUFuncOp> kernels;
    for (Function *function : group)
      if (function->kernel)
        kernels.push_back(function->kernel);
    KernelDescriptors descriptors(
        kernels, kernels.empty() ? ArrayRef<gpu::LaunchFuncOp>()
                                 : launches.lookup(kernels.front()));
    SmallVector<Plans> plans;
    for (Function *function : group)
      plans.push_back(choose(*function, descriptors));
    descriptors.materialize();
    for (auto [function, each] : llvm::zip(group, plans)) {
      setDescriptors(*function, each, descriptors);
      if (failed(expand(*function, each)))
        return failure();
    }
    return success();
  }

  static Value getViewOf(Operation *copy) {
    return cast<AccessOpInterface>(copy).getAccessedCache();
  }

  /// The copies of a function that are of the same view have the number of the
  /// first.
  static unsigned getNumber(const Function &function, Operation *copy) {
    return llvm::find_if(function.copies,
                         [&](Operation *other) {
                           return getViewOf(other) == getViewOf(copy);
                         }) -
           function.copies.begin();
  }

  static Plans choose(const Function &function,
                      KernelDescriptors &descriptors) {
    Plans plans;
    for (Operation *copy : function.copies) {
      // Only a kernel sets up barriers, and only waits that are near tell of
      // their phases.
      bool hasBarrier =
          function.kernel &&
          (isa<ProduceOp>(copy->getParentOp()) || hasOwnWait(copy));
      Makeable makeable = hasBarrier ? descriptors.getMakeable(getViewOf(copy))
                                     : Makeable::None;
      const Chip *chip = isInGPUCode(copy) ? function.chip : nullptr;
      Plan plan = {chooseWay(copy, chip, hasBarrier, makeable)};
      if (plan.choice.descriptor)
        descriptors.request(getNumber(function, copy), *plan.choice.descriptor,
                            getViewOf(copy));
      plans.try_emplace(copy, plan);
    }
    return plans;
  }

  static void setDescriptors(const Function &function, Plans &plans,
                             const KernelDescriptors &descriptors) {
    for (auto &[copy, plan] : plans)
      if (plan.choice.descriptor)
        plan.descriptor =
            descriptors.lookup(function.kernel, getNumber(function, copy),
                               *plan.choice.descriptor);
  }

  /// Where a pipe can be: on the CPU, or in a kernel with a target.
  static LogicalResult checkPipe(PipeOp pipe, const Function &function) {
    if (!isInGPUCode(pipe) || function.kernel)
      return success();
    return pipe.emitOpError("expects a kernel in a gpu.module with one target, "
                            "or host code");
  }

  /// Which copy a wait is for decides how it waits: for a store, it must be
  /// known.
  static LogicalResult checkWaits(const Function &function) {
    bool hasStores =
        function.op->walk([](TMAStoreOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    for (WaitOp wait : function.waits) {
      Operation *copy = wait.getToken().getDefiningOp();
      if (hasStores &&
          !isa_and_present<AsyncLoadTileOp, AsyncGatherTileOp, TMAStoreOp>(
              copy))
        return wait.emitOpError("expects the token of a copy itself, in a "
                                "function with 'kvcache.tma_store'");
    }
    return success();
  }

  /// A wait for a store belongs to the instruction.
  static bool isForStore(WaitOp wait) {
    return wait.getToken().getDefiningOp<TMAStoreOp>();
  }

  static LogicalResult expand(Function &function, const Plans &plans) {
    for (Operation *copy : function.copies)
      if (failed(checkConstantElement(cast<AccessOpInterface>(copy))))
        return failure();
    std::optional<KernelSetup> setup;
    if (function.kernel)
      setup.emplace(function.kernel, *function.chip);
    for (PipeOp pipe : function.pipes)
      if (failed(checkPipe(pipe, function)) ||
          failed(expandPipe(pipe, plans, function.chip,
                            setup ? &*setup : nullptr)))
        return failure();
    if (failed(checkWaits(function)))
      return failure();
    llvm::erase_if(function.waits, isForStore);
    expandCopies(function.copiesOutsideOfPipes, function.waits, plans,
                 function.chip, setup ? &*setup : nullptr);
    return success();
  }
};

} // namespace
