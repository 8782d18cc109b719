//===- AnnotateLoops.cpp - What authors say of loops ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_ANNOTATELOOPS
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct AnnotateLoops : kvcache::impl::AnnotateLoopsBase<AnnotateLoops> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      StringRef name = LLVM::LoopAnnotationAttr::name;
      auto annotation = op->getAttrOfType<LLVM::LoopAnnotationAttr>(name);
      if (!annotation)
        return;
      if (auto branch = dyn_cast<LLVM::BrOp>(op))
        branch.setLoopAnnotationAttr(annotation);
      else if (auto branch = dyn_cast<LLVM::CondBrOp>(op))
        branch.setLoopAnnotationAttr(annotation);
      else
        return;
      op->removeDiscardableAttr(name);
    });
  }
};

} // namespace
