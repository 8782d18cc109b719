//===- CheckInput.cpp - What upstream's passes can't take -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/UpstreamDefects.h"
#include "kvcache/Support/Verification.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHECKINPUT
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

LogicalResult checkDimension(Operation *op) {
  auto query = dyn_cast<ShapedDimOpInterface>(op);
  if (!query)
    return success();
  auto type = cast<ShapedType>(query.getShapedValue().getType());
  std::optional<int64_t> dim = getConstantIntValue(query.getDimension());
  if (!dim || !type.hasRank() || (*dim >= 0 && *dim < type.getRank()))
    return success();
  return op->emitOpError("expects a dimension below the rank (")
         << type.getRank() << "), got " << *dim;
}

/// A module has functions, globals and other symbols; what else the LLVM
/// dialect has for it takes and gives no values. Passes ask for the function of
/// every other op.
LogicalResult checkPlace(Operation *op) {
  if (!isa_and_nonnull<ModuleOp, gpu::GPUModuleOp>(op->getParentOp()) ||
      isa<ModuleOp, SymbolOpInterface>(op))
    return success();
  StringRef dialect = op->getName().getDialectNamespace();
  bool hasValues = op->getNumOperands() != 0 || op->getNumResults() != 0;
  if (dialect == "transform" || (dialect == "llvm" && !hasValues))
    return success();
  return checkInFunction(op);
}

/// The attributes that a function or a call gives to the op of LLVM that it
/// becomes. Upstream's lowering does not expect that one has another type.
template <typename LLVMOp> LogicalResult checkAttributesOf(Operation *op) {
  typename LLVMOp::Properties properties;
  return LLVMOp::setPropertiesFromAttr(
      properties, op->getDiscardableAttrDictionary(), [&] {
        return op->emitOpError("becomes '")
               << LLVMOp::getOperationName() << "': ";
      });
}

LogicalResult checkAttributes(Operation *op) {
  if (!upstream::castsFunctionAttributes)
    return success();
  if (isa<func::CallOp>(op))
    return checkAttributesOf<LLVM::CallOp>(op);
  if (isa<func::FuncOp, gpu::GPUFuncOp>(op))
    return checkAttributesOf<LLVM::LLVMFuncOp>(op);
  return success();
}

struct CheckInput : kvcache::impl::CheckInputBase<CheckInput> {
  void runOnOperation() override {
    WalkResult result =
        getOperation()->walk<WalkOrder::PreOrder>([](Operation *op) {
          return WalkResult(
              failure(failed(checkPlace(op)) || failed(checkDimension(op)) ||
                      failed(checkAttributes(op)) ||
                      failed(checkCallee(dyn_cast<LLVM::InvokeOp>(op)))));
        });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
