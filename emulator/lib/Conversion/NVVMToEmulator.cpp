//===- NVVMToEmulator.cpp - Kernels for the emulator ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Emulator/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Target/Instructions.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CONVERTNVVMTOEMULATOR
#include "kvcache/Emulator/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

constexpr decltype(&lowerRegister) kFamilies[] = {
    lowerRegister,       lowerBarrier,   lowerSynchronization,
    lowerWarpOp,         lowerAsyncCopy, lowerWarpgroupOp,
    lowerTensorMemoryOp, lowerMathOp,    lowerControlOp};

/// Ops that only a chip has, and that no family lowers.
LogicalResult checkHostOp(Operation *op, SymbolTable &symbols) {
  if (isa_and_present<NVVM::NVVMDialect>(op->getDialect()) ||
      isa<LLVM::InlineAsmOp>(op))
    return op->emitOpError("has no lowering for the emulator");
  if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op))
    if (intrinsic.getIntrin().starts_with("llvm.nvvm."))
      return op->emitOpError("of ")
             << intrinsic.getIntrin() << " has no lowering for the emulator";
  auto call = dyn_cast<LLVM::CallOp>(op);
  if (!call || call.getCallee()->starts_with("kvcacheEmulator"))
    return success();
  auto callee = symbols.lookup<LLVM::LLVMFuncOp>(*call.getCallee());
  if (!callee || callee.isExternal())
    return op->emitOpError("of @")
           << *call.getCallee() << " has no lowering for the emulator";
  return success();
}

LogicalResult lowerOps(gpu::GPUModuleOp module, EmulatorCalls &calls) {
  SymbolTable symbols(module);
  SmallVector<Operation *> ops;
  module.walk([&](LLVM::LLVMFuncOp function) {
    if (!function.isExternal())
      function.getBody().walk([&](Operation *op) { ops.push_back(op); });
  });
  for (Operation *op : ops) {
    if (!op->getDialect())
      return op->emitOpError("has no lowering for the emulator");
    bool isLowered = false;
    for (auto lower : kFamilies) {
      FailureOr<bool> result = lower(op, calls);
      if (failed(result))
        return failure();
      if ((isLowered = *result))
        break;
    }
    if (!isLowered && failed(checkHostOp(op, symbols)))
      return failure();
  }
  return success();
}

struct ConvertNVVMToEmulator
    : kvcache::impl::ConvertNVVMToEmulatorBase<ConvertNVVMToEmulator> {
  using ConvertNVVMToEmulatorBase::ConvertNVVMToEmulatorBase;

  void runOnOperation() override {
    ModuleOp host = getOperation();
    RuntimeCalls runtime(host);
    SmallVector<gpu::GPUModuleOp> modules(host.getOps<gpu::GPUModuleOp>());
    llvm::MapVector<StringAttr, SmallVector<Attribute>> objects;
    llvm::DenseMap<StringAttr, Location> locations;
    for (gpu::GPUModuleOp module : modules) {
      auto cloneOf = module->getAttrOfType<FlatSymbolRefAttr>(
          KVCacheDialect::kCloneOfAttr);
      StringAttr name = cloneOf ? cloneOf.getAttr() : module.getNameAttr();
      FailureOr<gpu::ObjectAttr> object = convert(module, runtime);
      if (failed(object))
        return signalPassFailure();
      objects[name].push_back(*object);
      locations.try_emplace(name, module.getLoc());
      runtime.getSymbols().erase(module);
    }
    OpBuilder builder = OpBuilder::atBlockEnd(host.getBody());
    for (auto &[name, list] : objects)
      gpu::BinaryOp::create(builder, locations.at(name), name.getValue(),
                            nullptr, builder.getArrayAttr(list));
  }

private:
  FailureOr<gpu::ObjectAttr> convert(gpu::GPUModuleOp module,
                                     RuntimeCalls &runtime) {
    const Chip *chip = getTargetChip(module);
    if (!chip) {
      module.emitOpError("expects one target from the table of chips");
      return failure();
    }
    if (failed(checkHost(module)) || failed(checkInstructions(module, *chip)))
      return failure();
    dissolveRegisterFences(module);
    moveVariablesToEntry(module);
    FailureOr<int64_t> localBytes = getLocalBytes(module);
    if (failed(localBytes))
      return failure();
    // Shadows of variables and values are as large.
    if (sanitize)
      *localBytes *= 2;
    EmulatorCalls calls(runtime, *chip, sanitize, meter);
    calls.mayRewrite = rewrites;
    SharedLayout layout(module, /*hasRedZones=*/sanitize);
    SmallVector<KernelFacts, 0> kernels =
        getKernelFacts(module, layout, *localBytes);
    if (failed(addThreads(module, calls)))
      return failure();
    FailureOr<MatrixPrograms> programs = createMatrixPrograms(module);
    if (failed(programs))
      return failure();
    guardStacks(module, calls);
    addGuards(module, calls);
    if (failed(announceAccesses(module, *programs, calls)))
      return failure();
    if (sanitize)
      trackAccumulators(module, *programs, calls);
    if (failed(lowerOps(module, calls)))
      return failure();
    int64_t numRegisters = lowerMatrixPrograms(*programs, calls);
    if (failed(lowerBFloat16(module)))
      return failure();
    lowerSharedMemory(module, layout, calls);
    Attribute target = module.getTargetsAttr()[0];
    LLVM::GlobalOp emulated = moveToHost(module, kernels, numRegisters, calls);
    Builder builder(&getContext());
    auto properties = builder.getDictionaryAttr(builder.getNamedAttr(
        KVCacheDialect::kEmulatedAttr, FlatSymbolRefAttr::get(emulated)));
    return gpu::ObjectAttr::get(&getContext(), target,
                                gpu::CompilationTarget::Offload,
                                builder.getStringAttr(""), properties,
                                /*kernels=*/nullptr);
  }
};

} // namespace
