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

/// Fails for a value that upstream's verifiers let pass with a type that has no
/// such values, and which its translation makes no constant of.
LogicalResult checkValue(Operation *op) {
  Attribute value;
  Type type;
  bool fits = true;
  if (auto constant = dyn_cast<LLVM::ConstantOp>(op)) {
    value = constant.getValue();
    type = constant.getType();
    fits = !isa<FloatAttr>(value) || isa<FloatType, IntegerType>(type);
  } else if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
    value = global.getValueOrNull();
    type = global.getType();
    fits = !isa_and_nonnull<ElementsAttr>(value) ||
           isa<LLVM::LLVMArrayType, LLVM::LLVMStructType, VectorType>(type);
  }
  if (fits)
    return success();
  return op->emitOpError("has the value ")
         << value << ", which is none of type " << type;
}

/// Fails for a cast between a vector and a scalar, or between vectors of other
/// lengths, which only upstream's verifier of `llvm.bitcast` looks at.
LogicalResult checkCast(Operation *op) {
  if (!isa<LLVM::AddrSpaceCastOp, LLVM::IntToPtrOp, LLVM::PtrToIntOp,
           LLVM::TruncOp, LLVM::SExtOp, LLVM::ZExtOp, LLVM::FPExtOp,
           LLVM::FPTruncOp, LLVM::FPToSIOp, LLVM::FPToUIOp, LLVM::SIToFPOp,
           LLVM::UIToFPOp>(op))
    return success();
  Type from = op->getOperandTypes().front(), to = op->getResultTypes().front();
  auto fromVector = dyn_cast<VectorType>(from),
       toVector = dyn_cast<VectorType>(to);
  if (fromVector && toVector
          ? fromVector.getShape() == toVector.getShape() &&
                fromVector.getScalableDims() == toVector.getScalableDims()
          : !fromVector && !toVector)
    return success();
  return op->emitOpError("can't cast ") << from << " to " << to;
}

struct CheckLowered : kvcache::impl::CheckLoweredBase<CheckLowered> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      if (isa<ModuleOp, gpu::GPUModuleOp>(op))
        return WalkResult::advance();
      if (isa_and_present<LLVM::LLVMDialect, NVVM::NVVMDialect>(
              op->getDialect()))
        return WalkResult(failure(failed(checkElementType(op)) ||
                                  failed(checkValue(op)) ||
                                  failed(checkCast(op))));
      op->emitOpError("has no lowering to LLVM here");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
