//===- InlineChecks.cpp - Inline calls, the last one first ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_INLINECHECKS
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct InlineChecks : kvcache::impl::InlineChecksBase<InlineChecks> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::SmallSetVector<LLVM::LLVMFuncOp, 4> inlined;
    SmallVector<Call> calls = findCalls(symbols);
    // The last one first: a split moves all that follows in the block.
    for (auto [call, callee] : llvm::reverse(calls)) {
      inlineCall(call, callee);
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
    llvm::DenseMap<Operation *, bool> areChecks;
    getOperation().walk([&](LLVM::CallOp call) {
      std::optional<StringRef> name = call.getCallee();
      auto callee = name ? symbols.lookup<LLVM::LLVMFuncOp>(*name) : nullptr;
      // A loop that is not lowered has one block.
      auto caller = dyn_cast<LLVM::LLVMFuncOp>(call->getParentOp());
      // A nested module has functions of its own.
      if (!callee || !caller || caller->getParentOp() != getOperation())
        return;
      auto [known, isNew] = areChecks.try_emplace(callee);
      if (isNew)
        known->second = isCheck(callee);
      if (known->second && callee != caller)
        calls.push_back({call, callee});
    });
    return calls;
  }

  /// Whether a function has nothing but comparisons, branches and calls, which
  /// mean the same in a caller.
  static bool isCheck(LLVM::LLVMFuncOp function) {
    if (!function.getAlwaysInline() || function.isExternal() ||
        function.getLinkage() != LLVM::Linkage::Internal ||
        function.isVarArg() || function.getArgAttrsAttr() ||
        !isa<LLVM::LLVMVoidType>(function.getFunctionType().getReturnType()))
      return false;
    WalkResult result = function.getBody().walk([&](Operation *op) {
      auto call = dyn_cast<LLVM::CallOp>(op);
      bool isPlain =
          call ? call.getCallee() && *call.getCallee() != function.getName()
               : isa<LLVM::ConstantOp, LLVM::ICmpOp, LLVM::CondBrOp, LLVM::BrOp,
                     LLVM::ReturnOp, LLVM::UnreachableOp>(op);
      return isPlain ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !result.wasInterrupted();
  }

  /// MLIR's inliner would look through the blocks before a call each time.
  static void inlineCall(LLVM::CallOp call, LLVM::LLVMFuncOp callee) {
    Location loc = call.getLoc();
    Block *before = call->getBlock();
    Block *after = before->splitBlock(call->getIterator());
    IRMapping mapping;
    mapping.map(callee.getArguments(), call.getArgOperands());
    callee.getBody().cloneInto(before->getParent(), after->getIterator(),
                               mapping);
    call.erase();
    SmallVector<LLVM::ReturnOp> ends;
    for (Block &block : callee.getBody()) {
      Block *copy = mapping.lookup(&block);
      for (Operation &op : *copy)
        op.setLoc(loc);
      if (auto end = dyn_cast<LLVM::ReturnOp>(copy->getTerminator()))
        ends.push_back(end);
    }
    continueAt(after, ends);
    Block *entry = mapping.lookup(&callee.getBody().front());
    before->getOperations().splice(before->end(), entry->getOperations());
    entry->erase();
  }

  /// The block follows what returns: without a branch, if that is one block.
  static void continueAt(Block *after, ArrayRef<LLVM::ReturnOp> ends) {
    if (ends.size() == 1) {
      LLVM::ReturnOp end = ends.front();
      Block *last = end->getBlock();
      end->erase();
      last->getOperations().splice(last->end(), after->getOperations());
      return after->erase();
    }
    for (LLVM::ReturnOp end : ends) {
      OpBuilder builder(end);
      LLVM::BrOp::create(builder, end->getLoc(), after);
      end->erase();
    }
  }
};

} // namespace
