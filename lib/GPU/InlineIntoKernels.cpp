//===- InlineIntoKernels.cpp - Inline calls in kernels --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/Inliner.h"
#include "mlir/Transforms/InliningUtils.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_INLINEINTOKERNELS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// Upstream's rules, but with inlining into the body of a kernel.
struct KernelInliner : InlinerInterface {
  using InlinerInterface::InlinerInterface;
  using InlinerInterface::isLegalToInline;

  bool isLegalToInline(Region *dest, Region *src, bool wouldBeCloned,
                       IRMapping &mapping) const override {
    return isa<gpu::GPUFuncOp>(dest->getParentOp()) ||
           InlinerInterface::isLegalToInline(dest, src, wouldBeCloned, mapping);
  }
};

struct InlineIntoKernels
    : kvcache::impl::InlineIntoKernelsBase<InlineIntoKernels> {
  void runOnOperation() override {
    KernelInliner inliner(&getContext());
    InlinerConfig config;
    SymbolTable symbols(getOperation());
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      for (Block &block : llvm::make_early_inc_range(kernel.getBody()))
        for (auto call :
             llvm::make_early_inc_range(block.getOps<func::CallOp>())) {
          auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
          if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
            continue;
          if (succeeded(inlineCall(inliner, config.getCloneCallback(), call,
                                   callee, &callee.getBody())))
            call.erase();
        }
  }
};

} // namespace
