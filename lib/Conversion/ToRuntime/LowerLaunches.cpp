//===- LowerLaunches.cpp - Launches to calls of the C ABI -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCalls.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERLAUNCHES
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct LowerLaunches : kvcache::impl::LowerLaunchesBase<LowerLaunches> {
  using LowerLaunchesBase::LowerLaunchesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkNestedModules(module)))
      return signalPassFailure();
    DeviceCalls device(module, callerWaits);
    llvm::SetVector<Attribute> kernels = findKernels(module);
    for (auto binary :
         llvm::make_early_inc_range(module.getOps<gpu::BinaryOp>()))
      if (failed(lowerBinary(binary, device.runtime)))
        return signalPassFailure();

    WalkResult result = module.walk(
        [&](Operation *op) { return WalkResult(lower(op, device)); });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (!kernels.empty())
      createTable(kernels.getArrayRef(), device);
    replaceTypes();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }

private:
  /// Finds the kernels that the module launches: the names of its module and
  /// its own, and the bytes of dynamic shared memory if they are constant.
  static llvm::SetVector<Attribute> findKernels(ModuleOp module) {
    Builder builder(module.getContext());
    llvm::SetVector<Attribute> kernels;
    module.walk([&](gpu::LaunchFuncOp launch) {
      APInt bytes(64, 0);
      if (Value shared = launch.getDynamicSharedMemorySize())
        matchPattern(shared, m_ConstantInt(&bytes));
      kernels.insert(builder.getArrayAttr(
          {launch.getKernelModuleName(), launch.getKernelName(),
           builder.getI64IntegerAttr(bytes.getSExtValue())}));
    });
    return kernels;
  }

  /// Lists the kernels in a constant.
  static void createTable(ArrayRef<Attribute> kernels, DeviceCalls &device) {
    RuntimeCalls &runtime = device.runtime;
    Location loc = runtime.getModule().getLoc();
    Type pointer = device.pointerType;
    LLVM::GlobalOp table = runtime.createStructs(
        loc, "kvcache_kernel", {pointer, pointer, device.i64}, kernels.size(),
        [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
          auto kernel = cast<ArrayAttr>(kernels[index]);
          auto binary = runtime.getSymbols().lookup<LLVM::GlobalOp>(
              cast<StringAttr>(kernel[0]));
          StringRef name = cast<StringAttr>(kernel[1]);
          fields.set(LLVM::AddressOfOp::create(builder, loc, binary), 0);
          fields.set(runtime.getString(builder, loc, name), 1);
          fields.set(cast<IntegerAttr>(kernel[2]).getInt(), device.i64, 2);
        });
    runtime.createStruct(
        loc, kLaunchedKernels, {pointer, device.i64},
        [&](FieldBuilder &fields, OpBuilder &builder) {
          fields.set(LLVM::AddressOfOp::create(builder, loc, table), 0);
          fields.set(kernels.size(), device.i64, 1);
        });
  }

  /// Replaces the types of descriptor values, which may be results of functions
  /// and loop variables. Some values already have the new type.
  void replaceTypes() {
    AttrTypeReplacer replacer;
    replacer.addReplacement([](TMATileType type) -> Type {
      return getDescriptorBytesType(type.getContext());
    });
    replacer.addReplacement([](gpu::AsyncTokenType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }

  static LogicalResult lower(Operation *op, DeviceCalls &device) {
    if (isa<EncodeTensorMapOp, gpu::AsyncOpInterface>(op) &&
        failed(checkInFunction(op)))
      return failure();
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](EncodeTensorMapOp op) {
          lowerTensorMap(op, device);
          return success();
        })
        .Case([&](gpu::LaunchFuncOp op) { return lowerLaunch(op, device); })
        .Case([&](gpu::AllocOp op) { return lowerAlloc(op, device); })
        .Case([&](gpu::MemcpyOp op) { return lowerMemcpy(op, device); })
        .Case([&](gpu::MemsetOp op) { return lowerMemset(op, device); })
        .Case([&](gpu::DeallocOp op) {
          lowerDealloc(op, device);
          return success();
        })
        .Case([&](gpu::WaitOp op) {
          lowerWait(op, device);
          return success();
        })
        .Case([](gpu::AsyncOpInterface op) {
          return op->emitOpError("has no lowering to calls of the runtime");
        })
        .Default(success());
  }
};

} // namespace
