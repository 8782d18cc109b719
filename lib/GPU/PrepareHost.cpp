//===- PrepareHost.cpp - Host code alone, for the CPU --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMapOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/Support/Nesting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_PREPAREHOST
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct PrepareHost : kvcache::impl::PrepareHostBase<PrepareHost> {
  using PrepareHostBase::PrepareHostBase;

  void runOnOperation() override {
    if (failed(kvcache::checkNestedModules(getOperation())))
      return signalPassFailure();
    if (!hasDevice)
      eraseKernels();
    auto check = [&](Operation *op) {
      if (isa<gpu::GPUModuleOp>(op))
        return WalkResult::skip();
      if (!op->isRegistered()) {
        op->emitError("unregistered operation '")
            << op->getName() << "' has no lowering";
        return WalkResult::interrupt();
      }
      StringRef remedy = getRemedy(op);
      if (remedy.empty() || (hasDevice && runsOnDevice(op)))
        return WalkResult::advance();
      op->emitOpError("can't run on the CPU: ") << remedy;
      return WalkResult::interrupt();
    };
    if (getOperation().walk<WalkOrder::PreOrder>(check).wasInterrupted())
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isExternal() || (cWrappers && function.isPublic()))
        function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                          UnitAttr::get(&getContext()));
    // Only kernels have use for names, and LLVM doesn't support them.
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      for (unsigned index = 0; index < function.getNumArguments(); ++index)
        function.removeArgAttr(index, kvcache::KVCacheDialect::kArgNameAttr);
  }

private:
  /// Erases kernels, and warns if there is nothing else.
  void eraseKernels() {
    auto modules = llvm::to_vector(getOperation().getOps<gpu::GPUModuleOp>());
    if (!modules.empty() &&
        getOperation().getBody()->getOperations().size() == modules.size())
      modules.front().emitWarning(
          "has no code for the CPU, where no 'gpu.module' runs: write kernels "
          "as nested 'scf.parallel' loops, or use 'kvcache-to-emulator'");
    for (gpu::GPUModuleOp module : modules)
      module.erase();
  }

  static bool runsOnDevice(Operation *op) {
    return isa<gpu::LaunchFuncOp, kvcache::EncodeTensorMapOp, gpu::AllocOp,
               gpu::DeallocOp, gpu::MemcpyOp, gpu::MemsetOp, gpu::WaitOp>(op);
  }

  /// Gives the replacement for an op that only a GPU has; empty for others.
  static StringRef getRemedy(Operation *op) {
    using namespace kvcache;
    if (isa<gpu::LaunchFuncOp, gpu::LaunchOp>(op))
      return "write the kernel as nested 'scf.parallel' loops";
    if (isa<gpu::AllocOp, gpu::DeallocOp>(op))
      return "use 'memref.alloc' and 'memref.dealloc'";
    if (isa<gpu::MemcpyOp>(op))
      return "use 'memref.copy'";
    if (isa<gpu::MemsetOp>(op))
      return "use a loop of stores";
    if (isa<gpu::AllReduceOp, gpu::SubgroupReduceOp>(op))
      return "reduce by an 'scf.parallel' loop with 'init'";
    if (isa<gpu::WaitOp>(op))
      return "nothing there is asynchronous";
    if (isa<TMAPrefetchOp, TMAExpectOp, TMALoadOp, TMALoadRowsOp, TMAGather4Op,
            TMAGatherTileOp, TMAStoreOp, TensorMapOpInterface,
            EncodeTensorMapOp>(op))
      return "copies that can are 'kvcache.async_load_tile' and "
             "'kvcache.async_gather_tile'";
    if (isa<MmaOp, MmaWaitOp, TmemAllocOp, TmemMmaOp, TmemCommitOp, TmemLoadOp,
            TmemStoreOp, TmemViewOp, FragmentLoadOp, FragmentMmaOp>(op))
      return "multiply elements that 'kvcache.tile_load' reads";
    if (isa_and_present<NVVM::NVVMDialect>(op->getDialect()))
      return "only a kernel in a 'gpu.module' has instructions of a GPU";
    return "";
  }
};

} // namespace
