//===- ValueBounds.cpp - Bounds of indices --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/ValueBounds.h"

#include "kvcache/IR/CacheShape.h"

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

template <typename OpTy>
struct Bounds : ValueBoundsOpInterface::ExternalModel<Bounds<OpTy>, OpTy> {
  void populateBoundsForIndexValue(Operation *op, Value value,
                                   ValueBoundsConstraintSet &cstr) const {
    if constexpr (std::is_same_v<OpTy, ColIndexOp>) {
      auto column = cast<ColIndexOp>(op);
      if (auto stride = getColumnStride(column.getCache().getType()))
        cstr.bound(value) == cstr.getExpr(column.getHead()) * *stride;
    }
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

template <typename OpTy> void attachIfRanged(MLIRContext *context) {
  if constexpr (OpTy::template hasTrait<InferIntRangeInterface::Trait>())
    OpTy::template attachInterface<Bounds<OpTy>>(*context);
}

template <typename... OpTys> void attach(MLIRContext *context) {
  (attachIfRanged<OpTys>(context), ...);
}

} // namespace

void kvcache::registerValueBoundsOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVCacheDialect *) {
    attach<
#define GET_OP_LIST
#include "kvcache/IR/KVCacheOps.cpp.inc"
        >(context);
    GetRowOp::attachInterface<RowBounds>(*context);
  });
}
