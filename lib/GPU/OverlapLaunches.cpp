//===- OverlapLaunches.cpp - Launches before earlier ones have ended ------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_OVERLAPLAUNCHES
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// PTX ISA, "griddepcontrol".
constexpr unsigned kOldestChip = 90;

bool isOfExpansion(NVVM::GriddepcontrolOp op) {
  return op->hasAttr(KVCacheDialect::kProgrammaticAttr);
}

struct OverlapLaunches : kvcache::impl::OverlapLaunchesBase<OverlapLaunches> {
  using OverlapLaunchesBase::OverlapLaunchesBase;

  void runOnOperation() override {
    KernelLaunches launches(getOperation());
    // The clones of a module for several chips share its launches.
    llvm::MapVector<StringAttr, SmallVector<gpu::GPUModuleOp>> modules;
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      auto original = module->getAttrOfType<FlatSymbolRefAttr>(
          KVCacheDialect::kCloneOfAttr);
      modules[original ? original.getAttr() : module.getNameAttr()].push_back(
          module);
    }
    for (auto &[name, clones] : modules) {
      bool overlaps = enable && llvm::all_of(clones, canOverlap);
      for (gpu::GPUModuleOp module : clones)
        for (auto kernel : module.getOps<gpu::GPUFuncOp>())
          decide(kernel, overlaps, launches);
    }
  }

private:
  static bool canOverlap(gpu::GPUModuleOp module) {
    const Chip *chip = getTargetChip(module);
    return chip && chip->computeCapability >= kOldestChip;
  }

  void decide(gpu::GPUFuncOp kernel, bool overlaps,
              const KernelLaunches &launches) {
    SmallVector<NVVM::GriddepcontrolOp> controls;
    kernel.walk([&](NVVM::GriddepcontrolOp op) {
      if (isOfExpansion(op))
        controls.push_back(op);
    });
    if (controls.empty())
      return;
    for (NVVM::GriddepcontrolOp op : controls) {
      if (overlaps)
        op->removeAttr(KVCacheDialect::kProgrammaticAttr);
      else
        op.erase();
    }
    if (!overlaps)
      return;
    for (gpu::LaunchFuncOp launch : launches.lookup(kernel)) {
      if (launch->hasAttr(KVCacheDialect::kProgrammaticAttr))
        continue;
      launch->setAttr(KVCacheDialect::kProgrammaticAttr,
                      UnitAttr::get(&getContext()));
      ++numOverlapped;
    }
  }
};

} // namespace
