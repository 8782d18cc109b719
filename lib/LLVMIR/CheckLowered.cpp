//===- CheckLowered.cpp - Reject what is left over ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHECKLOWERED
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// Fails for an element type, such as that of an `llvm.alloca`, which
/// upstream's verifiers let pass, and which its translation ends the process
/// at.
LogicalResult checkElementType(Operation *op) {
  auto type = op->getAttrOfType<TypeAttr>("elem_type");
  if (!type || LLVM::isCompatibleType(type.getValue()))
    return success();
  return op->emitOpError("has elements of ")
         << type.getValue() << ", which is no type of LLVM";
}

struct CheckLowered : kvcache::impl::CheckLoweredBase<CheckLowered> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      if (isa<ModuleOp, gpu::GPUModuleOp>(op))
        return WalkResult::advance();
      if (isa_and_present<LLVM::LLVMDialect, NVVM::NVVMDialect>(
              op->getDialect()))
        return WalkResult(checkElementType(op));
      op->emitOpError("has no lowering to LLVM here");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
