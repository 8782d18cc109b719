//===- ToPTX.cpp - The pipeline kvcache-to-ptx ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CleanUp.h"
#include "HostLowering.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Pipelines/Pipelines.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Nested parallel loops become kernels: the outer ones the grid, the innermost
/// dimension along x, so that neighbouring threads touch neighbouring elements.
static void addOutlining(OpPassManager &pm) {
  pm.addPass(createWrapParallelBodies());
  GpuMapParallelLoopsPassOptions mapping;
  mapping.mappingPolicyStr = "innermost-first";
  pm.addNestedPass<func::FuncOp>(createGpuMapParallelLoopsPass(mapping));
  pm.addPass(createConvertParallelLoopToGpuPass());
  addCleanUp(pm);
  pm.addPass(createGpuLaunchSinkIndexComputationsPass());
  pm.addPass(createGpuKernelOutliningPass());
  // Device functions go into their kernels.
  pm.addPass(createInlinerPass());
  pm.nest<gpu::GPUModuleOp>().addPass(createInlineIntoKernels());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createNameKernelArgs());
}

/// 64-bit index arithmetic becomes 32-bit where its values provably fit.
static void addIntegerNarrowing(OpPassManager &pm) {
  pm.addPass(arith::createIntRangeOptimizationsPass());
  arith::ArithIntRangeNarrowingOptions narrowing;
  narrowing.bitwidthsSupported = {32};
  pm.addPass(arith::createArithIntRangeNarrowing(narrowing));
  addCleanUp(pm);
}

/// From memref, vector and scf in a kernel to NVVM and LLVM.
static void addKernelLowering(OpPassManager &pm) {
  pm.addPass(createNarrowFloats());
  pm.addPass(createFloatsAsBits());
  addCleanUp(pm);
  addIntegerNarrowing(pm);
  pm.addPass(createConvertNVGPUToNVVMPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  addCleanUp(pm);
  pm.addPass(createLowerAffinePass());
  pm.addPass(createLowerGPUMath());
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertGpuOpsToNVVMOps());
  pm.addPass(createConvertVectorToLLVMPass());
  // What the lowering of vectors leaves.
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createConvertNVVMToLLVMPass());
  addCleanUp(pm);
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createMarkDescriptors());
  pm.addPass(createHoistUniform());
  pm.addPass(createCSEPass());
  pm.addPass(createCheckLowered());
}

/// From launches of compiled kernels, and the host code around them, to LLVM.
static void addLaunchLowering(OpPassManager &pm) {
  PrepareHostOptions prepare;
  prepare.hasDevice = true;
  pm.addPass(createPrepareHost(prepare));
  pm.addPass(createLowerLaunches());
  pm.addPass(createShareWithHost());
  addHostLowering(pm);
}

void kvcache::buildToPTXPipeline(OpPassManager &pm,
                                 const ToPTXOptions &options) {
  addOutlining(pm);
  AttachTargetsOptions targets;
  targets.chips.assign(options.chips.begin(), options.chips.end());
  targets.optLevel = options.optLevel;
  pm.addPass(createAttachTargets(targets));

  pm.addPass(createHoistLookups());
  pm.addPass(createExpandCopies());
  pm.nest<gpu::GPUModuleOp>().addPass(createConvertKVCacheToNVVM());
  pm.addPass(createConvertKVCacheToMemRef());
  pm.addPass(createConvertKVCacheChecks());
  FlattenKernelArgsOptions flatten;
  flatten.noAlias = options.noAlias;
  pm.addPass(createFlattenKernelArgs(flatten));
  addCleanUp(pm);
  pm.addPass(createPackSharedMemory());

  addKernelLowering(pm.nest<gpu::GPUModuleOp>());
  SerializeKernelsOptions serialize;
  serialize.format = options.format;
  serialize.toolkit = options.toolkit;
  pm.addPass(createSerializeKernels(serialize));
  if (options.host)
    addLaunchLowering(pm);
}

void kvcache::registerPipelines() {
  PassPipelineRegistration<ToPTXOptions>(
      "kvcache-to-ptx",
      "Compile cache ops for NVIDIA chips: parallel loops become kernels, and "
      "kernels PTX, cubins or fat binaries",
      buildToPTXPipeline);
  PassPipelineRegistration<>(
      "kvcache-to-cpu",
      "Compile cache ops of host functions to LLVM for the CPU",
      buildToCPUPipeline);
}
