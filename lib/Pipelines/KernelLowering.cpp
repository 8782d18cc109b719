//===- KernelLowering.cpp - From cache ops to NVVM, and launches ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Pipelines/KernelLowering.h"
#include "CleanUp.h"
#include "HostLowering.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Support/UpstreamDefects.h"
#include "kvcache/Target/Passes.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Cleans up function by function, for the reason that addFunctionLowering has.
static void addCleanUpOfFunctions(OpPassManager &pm,
                                  function_ref<void(OpPassManager &)> fold) {
  addCleanUp(pm.nest<func::FuncOp>(), fold);
  addCleanUp(pm.nest<gpu::GPUModuleOp>().nestAny(), fold);
}

/// Nested parallel loops become kernels: the outer ones the grid, the innermost
/// dimension along x, so that neighbouring threads touch neighbouring elements.
static void addOutlining(OpPassManager &pm) {
  pm.addPass(createFuseBlockLoops());
  pm.addPass(createWrapParallelBodies());
  GpuMapParallelLoopsPassOptions mapping;
  mapping.mappingPolicyStr = "innermost-first";
  pm.addNestedPass<func::FuncOp>(createGpuMapParallelLoopsPass(mapping));
  pm.addPass(createConvertParallelLoopToGpuPass());
  addCleanUpOfFunctions(pm, addFolding);
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  pm.addPass(createInlineCalls());
  pm.addPass(createNameKernelArgs());
}

/// Adds the passes that lower each function of a module of kernels. Functions
/// are lowered one after another, because their ops are then still in the
/// processor's cache. The functions of a large module share the threads.
static void addFunctionLowering(OpPassManager &pm) {
  pm.addPass(createNarrowFloats());
  pm.addPass(createFloatsAsBits());
  pm.addPass(createNarrowIntegers());
  pm.addPass(createConvertNVGPUToNVVMPass());
  pm.addPass(createExpandForLLVM());
  pm.addPass(createLowerControlFlow());
}

/// Adds the last passes for functions of the LLVM dialect. LLVM unites equal
/// parts of inline PTX.
static void addLLVMLowering(OpPassManager &pm, bool makeInlinePTX) {
  pm.addPass(createCSEPass());
  if (makeInlinePTX)
    pm.addPass(createConvertNVVMToLLVMPass());
  addFoldingWithoutViews(pm);
  pm.addPass(createReconcileUnrealizedCastsPass());
}

/// Better addresses, loops and accesses, in functions of the LLVM dialect.
static void addLLVMOptimization(OpPassManager &pm, bool makeInlinePTX) {
  pm.addPass(createSplitAddresses());
  pm.addPass(createAnnotateLoops());
  pm.addPass(createHoistUniform());
  if (makeInlinePTX)
    pm.addPass(createCacheOperators());
}

/// From memref, vector and scf in kernels to NVVM and LLVM.
static void addNVVMLowering(OpPassManager &pm, bool makeInlinePTX) {
  addFunctionLowering(pm.nestAny());
  pm.addPass(createKernelsToNVVM());
  pm.addPass(createCheckInstructions());
  addLLVMLowering(pm.nestAny(), makeInlinePTX);
  pm.addPass(createMarkDescriptors());
  addLLVMOptimization(pm.nestAny(), makeInlinePTX);
  pm.addPass(createVerifyIR());
  pm.addPass(createCheckLowered());
}

void kvcache::addOpExpansion(OpPassManager &pm, ArrayRef<std::string> chips,
                             bool checks) {
  PlanAttentionOptions plan;
  plan.chips.assign(chips.begin(), chips.end());
  pm.addPass(createPlanAttention(plan));
  pm.addPass(createSplitAttention());
  TileAttentionOptions tile;
  tile.checks = checks;
  tile.chips.assign(chips.begin(), chips.end());
  pm.addPass(createTileAttention(tile));
  ExpandOpsOptions expand;
  expand.forGPU = true;
  expand.checks = checks;
  expand.chips.assign(chips.begin(), chips.end());
  pm.addPass(createExpandOps(expand));
}

void kvcache::addKernelLowering(OpPassManager &pm,
                                const KernelLowering &options) {
  pm.addPass(createCheckInput());
  if (upstream::foldsE8M0Wrongly)
    pm.addPass(createWorkaroundE8M0Folding());
  addOpExpansion(pm, options.chips, /*checks=*/false);
  addOutlining(pm);
  AttachTargetsOptions targets;
  targets.chips.assign(options.chips.begin(), options.chips.end());
  targets.optLevel = options.optLevel;
  pm.addPass(createAttachTargets(targets));
  OverlapLaunchesOptions overlap;
  overlap.enable = options.overlapLaunches;
  pm.addPass(createOverlapLaunches(overlap));
  // Instructions that authors write by hand are checked before the verifier
  // sees them, those that ops of the GPU and NVGPU dialects become further
  // down.
  pm.nest<gpu::GPUModuleOp>().addPass(createCheckInstructions());
  pm.nest<gpu::GPUModuleOp>().addPass(createBoundRegisters());
  pm.nest<gpu::GPUModuleOp>().addPass(createExpandAllReduce());
  pm.nest<gpu::GPUModuleOp>().addPass(createScheduleAttention());
  pm.nest<gpu::GPUModuleOp>().addPass(createLowerFragments());

  pm.addPass(createHoistLookups());
  buildExpandCopiesPipeline(pm);
  pm.nest<gpu::GPUModuleOp>().addPass(createConvertKVCacheToNVVM());
  pm.addPass(createConvertKVCacheChecks());
  pm.addPass(createConvertKVCacheToMemRef());
  // Descriptors bring checks of their own.
  pm.addPass(createConvertKVCacheChecks());
  FlattenKernelArgsOptions flatten;
  flatten.noAlias = options.noAlias;
  pm.addPass(createFlattenKernelArgs(flatten));
  addCleanUpOfFunctions(pm, addFoldingWithoutViews);
  pm.addPass(createVerifyIR());
  pm.addPass(createPackSharedMemory());
  addNVVMLowering(pm.nest<gpu::GPUModuleOp>(), options.makeInlinePTX);
}

void kvcache::addLaunchLowering(OpPassManager &pm, bool tvmFFI,
                                bool callerWaits) {
  PrepareHostOptions prepare;
  prepare.hasDevice = true;
  prepare.cWrappers = !tvmFFI;
  pm.addPass(createPrepareHost(prepare));
  LowerLaunchesOptions lower;
  lower.callerWaits = callerWaits;
  pm.addPass(createLowerLaunches(lower));
  pm.addPass(createHostMemorySpaces());
  addHostLowering(pm);
}
