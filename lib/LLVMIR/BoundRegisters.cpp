//===- BoundRegisters.cpp - Ranges of special registers -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/LLVMIR/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_BOUNDREGISTERS
#include "kvcache/LLVMIR/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

/// The attribute of the ops in question.
constexpr StringLiteral kRange{"range"};

struct BoundRegisters : kvcache::impl::BoundRegistersBase<BoundRegisters> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa_and_present<NVVM::NVVMDialect>(op->getDialect()) ||
          !isa<InferIntRangeInterface>(op) || op->getNumResults() != 1 ||
          !llvm::is_contained(op->getName().getAttributeNames(), kRange) ||
          op->hasAttr(kRange))
        return;
      auto type = dyn_cast<IntegerType>(op->getResult(0).getType());
      if (!type)
        return;
      // The analysis takes the end for a signed number.
      APInt end = APInt::getSignedMaxValue(type.getWidth());
      op->setAttr(kRange,
                  LLVM::ConstantRangeAttr::get(
                      op->getContext(), APInt::getZero(type.getWidth()), end));
    });
  }
};

} // namespace
