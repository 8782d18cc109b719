//===- TrackHostMemory.cpp - Memory that failed calls free ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"
#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/RuntimeCalls.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_TRACKHOSTMEMORY
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct TrackHostMemory : kvcache::impl::TrackHostMemoryBase<TrackHostMemory> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    // Others may run without libkvcache_runtime.
    if (!symbols.lookup("kvcacheCallTVMFFI"))
      return markAllAnalysesPreserved();
    if (failed(checkNestedModules(getOperation())))
      return signalPassFailure();
    for (auto [name, tracked] : {std::pair("malloc", "kvcacheHostAlloc"),
                                 {"free", "kvcacheHostFree"}}) {
      auto function = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (function && function.isExternal() &&
          failed(symbols.rename(function, tracked)))
        return signalPassFailure();
    }
    LLVM::LLVMFuncOp free = getFree(symbols);
    RuntimeCalls runtime(getOperation());
    getOperation().walk([&](LLVM::CallOp call) {
      if (isAlloc(call))
        noteAlloc(call, free, runtime);
      else if (call.getCallee() == kFree)
        noteFree(call, runtime);
    });
  }

private:
  static constexpr StringLiteral kFree{"kvcacheMemFree"};

  static bool isAlloc(LLVM::CallOp call) {
    std::optional<StringRef> callee = call.getCallee();
    return callee == "kvcacheMemAlloc" || callee == "kvcacheMemAllocManaged";
  }

  /// The function that frees device memory, which a module that allocates some
  /// may lack. Null if it does not allocate any.
  LLVM::LLVMFuncOp getFree(SymbolTable &symbols) {
    auto known = symbols.lookup<LLVM::LLVMFuncOp>(kFree);
    if (known || !(symbols.lookup("kvcacheMemAlloc") ||
                   symbols.lookup("kvcacheMemAllocManaged")))
      return known;
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    auto type = LLVM::LLVMFunctionType::get(
        builder.getI32Type(), LLVM::LLVMPointerType::get(&getContext()));
    return LLVM::LLVMFuncOp::create(builder, getOperation().getLoc(), kFree,
                                    type);
  }

  static void noteAlloc(LLVM::CallOp call, LLVM::LLVMFuncOp function,
                        RuntimeCalls &runtime) {
    OpBuilder builder(call->getContext());
    builder.setInsertionPointAfter(call);
    Value free = LLVM::AddressOfOp::create(builder, call.getLoc(), function);
    runtime.call(builder, call.getLoc(), "kvcacheHostNoteDeviceAlloc",
                 /*resultType=*/{},
                 {call.getResult(), call.getOperand(1), free});
  }

  static void noteFree(LLVM::CallOp call, RuntimeCalls &runtime) {
    OpBuilder builder(call);
    runtime.call(builder, call.getLoc(), "kvcacheHostNoteDeviceFree",
                 /*resultType=*/{}, call.getOperand(0));
  }
};

} // namespace
