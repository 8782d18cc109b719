//===- RegionRules.cpp - Rules of ops in regions --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionRules.h"

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::onlyReadsMemory(Operation *op) {
  if (auto effects = dyn_cast<MemoryEffectOpInterface>(op))
    return effects.hasNoEffect() ||
           effects.onlyHasEffect<MemoryEffects::Read>();
  return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
}

InFlightDiagnostic kvcache::refuseInRegion(Operation *op, Operation *parent) {
  InFlightDiagnostic error = op->emitOpError("is not allowed in a region of '");
  error << parent->getName() << "', ";
  return error;
}

LogicalResult kvcache::verifyReader(Operation *op, Operation *parent) {
  if (isa<CallOpInterface>(op))
    return refuseInRegion(op, parent) << "which contains no calls";
  if (onlyReadsMemory(op))
    return success();
  return refuseInRegion(op, parent) << "whose ops at most read memory";
}

LogicalResult kvcache::verifyFragmentRegion(Operation *op, Operation *parent) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    if (llvm::any_of(types, llvm::IsaPred<FragmentType, InFlightType>))
      return refuseInRegion(op, parent) << "which has no fragments";
  return verifyReader(op, parent);
}
