//===- ValueBounds.cpp - Bounds of indices --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/ValueBounds.h"

#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/QueryOps.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Returns the range of a result for unknown operands.
std::optional<ConstantIntRanges> getRange(InferIntRangeInterface op,
                                          Value result) {
  SmallVector<ConstantIntRanges> operands(
      op->getNumOperands(),
      ConstantIntRanges::maxRange(IndexType::kInternalStorageBitWidth));
  std::optional<ConstantIntRanges> range;
  op.inferResultRanges(operands, [&](Value value, ConstantIntRanges inferred) {
    if (value == result)
      range = inferred;
  });
  return range;
}

struct Bounds
    : ValueBoundsOpInterface::ExternalModel<Bounds, InferIntRangeInterface> {
  void populateBoundsForIndexValue(Operation *op, Value value,
                                   ValueBoundsConstraintSet &cstr) const {
    if (auto column = dyn_cast<ColIndexOp>(op))
      if (auto stride = getColumnStride(column.getCache().getType()))
        cstr.bound(value) == cstr.getExpr(column.getHead()) * *stride;
    std::optional<ConstantIntRanges> range =
        getRange(cast<InferIntRangeInterface>(op), value);
    if (!range)
      return;
    cstr.bound(value) >= range->smin().getSExtValue();
    if (!range->smax().isMaxSignedValue())
      cstr.bound(value) <= range->smax().getSExtValue();
  }
};

struct RowBounds : ValueBoundsOpInterface::ExternalModel<RowBounds, GetRowOp> {
  void populateBoundsForIndexValue(Operation *, Value row,
                                   ValueBoundsConstraintSet &cstr) const {
    cstr.bound(row) >= 0;
  }
};

} // namespace

void kvcache::registerValueBoundsOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVCacheDialect *) {
    for (OperationName op : context->getRegisteredOperations())
      if (isa<KVCacheDialect>(op.getDialect()) &&
          op.hasInterface<InferIntRangeInterface>())
        op.attachInterface<Bounds>();
    GetRowOp::attachInterface<RowBounds>(*context);
  });
}
