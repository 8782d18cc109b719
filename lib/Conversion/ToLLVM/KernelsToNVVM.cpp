//===- KernelsToNVVM.cpp - Convert a module of kernels to NVVM ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AtomicOrder.h"
#include "KernelMessages.h"
#include "kvcache/Conversion/KVCacheToMemRef.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/DiagnosticHints.h"
#include "kvcache/Support/UpstreamDefects.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_KERNELSTONVVM
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct KernelsToNVVM : kvcache::impl::KernelsToNVVMBase<KernelsToNVVM> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (failed(checkFragmentsAreLowered(module)) ||
        failed(checkAlignments(module)) || failed(lowerKernelMessages(module)))
      return signalPassFailure();
    if (upstream::dropsAtomicOrder)
      orderAtomicUpdates(module);
    LowerToLLVMOptions options(
        &getContext(), DataLayout(cast<DataLayoutOpInterface>(*module)));
    LLVMTypeConverter converter(&getContext(), options);
    configureGpuToNVVMTypeConverter(converter);
    LLVMConversionTarget target(getContext());
    RewritePatternSet patterns(&getContext());
    populatePatterns(converter, target, patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    // Ops have been folded before, so patterns come first.
    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::AfterPatterns;
    DiagnosticHints hints(&getContext());
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (failed(applyPartialConversion(&op, target, frozen, config)))
        return signalPassFailure();
    relaxAtomicUpdates(module);
    if (failed(checkCallees(module)))
      signalPassFailure();
  }

private:
  /// The patterns of MLIR give variables of kernels any alignment.
  static LogicalResult checkAlignments(gpu::GPUModuleOp module) {
    StringRef name = LLVM::LLVMDialect::getAlignAttrName();
    auto check = [&](gpu::GPUFuncOp kernel, Attribute attribute) {
      auto alignment = dyn_cast_or_null<IntegerAttr>(attribute);
      if (!attribute || (alignment && alignment.getValue().isPowerOf2()))
        return success();
      return LogicalResult(kernel.emitOpError("expects '")
                           << name
                           << "' of its variables to be a power of two, got "
                           << attribute);
    };
    for (auto kernel : module.getOps<gpu::GPUFuncOp>()) {
      for (unsigned i = 0; i < kernel.getNumWorkgroupAttributions(); ++i)
        if (failed(check(kernel, kernel.getWorkgroupAttributionAttr(i, name))))
          return failure();
      for (unsigned i = 0; i < kernel.getNumPrivateAttributions(); ++i)
        if (failed(check(kernel, kernel.getPrivateAttributionAttr(i, name))))
          return failure();
    }
    return success();
  }

  /// Some patterns of MLIR call functions that they declare in the module of
  /// the host.
  static LogicalResult checkCallees(gpu::GPUModuleOp module) {
    SymbolTable symbols(module);
    WalkResult result = module.walk([&](LLVM::CallOp call) {
      std::optional<StringRef> callee = call.getCallee();
      if (!callee || symbols.lookup(*callee))
        return WalkResult::advance();
      emitError(call.getLoc(), "can't run on a GPU: becomes a call of @")
          << *callee << ", a function of the host";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  void populatePatterns(LLVMTypeConverter &converter, ConversionTarget &target,
                        RewritePatternSet &patterns) {
    for (Dialect *dialect : getContext().getLoadedDialects()) {
      auto *interface = dyn_cast<ConvertToLLVMPatternInterface>(dialect);
      if (interface)
        interface->populateConvertToLLVMConversionPatterns(target, converter,
                                                           patterns);
    }
    populateGpuToNVVMConversionPatterns(converter, patterns, /*benefit=*/10);
    populateGpuWMMAToNVVMConversionPatterns(converter, patterns);
    configureGpuToNVVMConversionLegality(target);
  }
};

} // namespace
