//===- CheckInput.cpp - What upstream's passes can't take -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Support/Nesting.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Upstream takes the first operand for the function, without looking for one.
LogicalResult checkCallee(Operation *op) {
  auto invoke = dyn_cast<LLVM::InvokeOp>(op);
  if (!invoke || invoke.getCalleeAttr() || op->getNumOperands() != 0)
    return success();
  return op->emitOpError("calls no function: it has neither the name of one "
                         "nor an operand");
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

/// Upstream lowers loops to the value that a reduction returned before it has
/// replaced the arguments of the region.
LogicalResult checkReduction(Operation *op) {
  auto result = dyn_cast<scf::ReduceReturnOp>(op);
  if (!result || !isa<BlockArgument>(result.getResult()))
    return success();
  return op->emitOpError("has no lowering for an argument of the reduction: "
                         "expects a value that an op computes");
}

struct CheckInput : kvcache::impl::CheckInputBase<CheckInput> {
  void runOnOperation() override {
    WalkResult result =
        getOperation()->walk<WalkOrder::PreOrder>([](Operation *op) {
          return WalkResult(
              failure(failed(checkPlace(op)) || failed(checkDimension(op)) ||
                      failed(checkCallee(op)) || failed(checkReduction(op))));
        });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
