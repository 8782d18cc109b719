//===- RegionRules.cpp - Rules of ops in regions --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionRules.h"

#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/IR/PipeOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
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

//===----------------------------------------------------------------------===//
// Regions that mean the same everywhere
//===----------------------------------------------------------------------===//

/// The dialects whose ops know no thread and no target.
static constexpr StringRef kPortableDialects[] = {
    "affine", "arith", "cf", "index", "math", "memref", "scf", "ub", "vector"};

/// Whether an op depends on its operands and memory alone.
static bool isPortable(Operation *op, bool readsCaches) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == KVCacheDialect::getDialectNamespace())
    return readsCaches || isa<YieldOp>(op);
  return llvm::is_contained(kPortableDialects, dialect) &&
         !isa<vector::VectorScaleOp>(op);
}

/// Whether all targets compute with values of a type.
static bool isPortable(Type type) {
  if (auto vector = dyn_cast<VectorType>(type); vector && vector.isScalable())
    return false;
  constexpr unsigned widest = 64;
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  return !isa<TensorType>(type) && (!integer || integer.getWidth() <= widest);
}

static LogicalResult verifyPortable(Operation *op, Operation *parent,
                                    ArrayRef<NamedValue> written,
                                    bool readsCaches) {
  if (op->hasTrait<OpTrait::HasParallelRegion>())
    return refuseInRegion(op, parent) << "which contains no parallel loops";
  if (isa<CallOpInterface>(op))
    return verifyReader(op, parent);
  if (!isPortable(op, readsCaches)) {
    InFlightDiagnostic error = refuseInRegion(op, parent);
    error << "whose ops are of ";
    llvm::interleaveComma(kPortableDialects, error);
    return error << (readsCaches ? " and kvcache" : "");
  }
  for (auto [name, value] : written)
    if (value && llvm::is_contained(op->getOperands(), value))
      return refuseInRegion(op, parent)
             << "which does not use '" << name << "'";
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (!isPortable(type))
        return refuseInRegion(op, parent)
               << "which has no tensors, scalable vectors and integers of more "
                  "than 64 bits, got "
               << type;
  return verifyFragmentRegion(op, parent);
}

LogicalResult kvcache::verifyPortableRegion(Region &region, Operation *parent,
                                            ArrayRef<NamedValue> written,
                                            bool readsCaches) {
  WalkResult result = region.walk([&](Operation *op) {
    return WalkResult(verifyPortable(op, parent, written, readsCaches));
  });
  return failure(result.wasInterrupted());
}
