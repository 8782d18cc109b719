//===- InlineChecks.cpp - Inline calls, the last one first ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/Inliner.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_INLINECHECKS
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct InlineChecks : kvcache::impl::InlineChecksBase<InlineChecks> {
  void runOnOperation() override {
    InlinerInterface inliner(&getContext());
    InlinerConfig config;
    SymbolTable symbols(getOperation());
    llvm::SmallSetVector<LLVM::LLVMFuncOp, 4> inlined;
    SmallVector<Call> calls = findCalls(symbols);
    for (auto [call, callee] : llvm::reverse(calls)) {
      if (failed(inlineCall(inliner, config.getCloneCallback(), call, callee,
                            &callee.getBody())))
        continue;
      call.erase();
      inlined.insert(callee);
    }
    for (LLVM::LLVMFuncOp callee : inlined)
      if (SymbolTable::symbolKnownUseEmpty(callee, getOperation()))
        symbols.erase(callee);
  }

private:
  using Call = std::pair<LLVM::CallOp, LLVM::LLVMFuncOp>;

  SmallVector<Call> findCalls(SymbolTable &symbols) {
    SmallVector<Call> calls;
    getOperation().walk([&](LLVM::CallOp call) {
      std::optional<StringRef> name = call.getCallee();
      auto callee = name ? symbols.lookup<LLVM::LLVMFuncOp>(*name) : nullptr;
      if (callee && callee.getAlwaysInline() && !callee.isExternal() &&
          callee.getLinkage() == LLVM::Linkage::Internal &&
          callee != call->getParentOp() &&
          // A loop that is not lowered has one block.
          isa<LLVM::LLVMFuncOp>(call->getParentOp()) &&
          // A nested module has functions of its own.
          call->getParentOp()->getParentOp() == getOperation())
        calls.push_back({call, callee});
    });
    return calls;
  }
};

} // namespace
