//===- CheckDimensions.cpp - Dimensions that a shape does not have --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CHECKDIMENSIONS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;

namespace {

struct CheckDimensions : kvcache::impl::CheckDimensionsBase<CheckDimensions> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](ShapedDimOpInterface op) {
      auto type = cast<ShapedType>(op.getShapedValue().getType());
      std::optional<int64_t> dim = getConstantIntValue(op.getDimension());
      if (!dim || !type.hasRank() || (*dim >= 0 && *dim < type.getRank()))
        return WalkResult::advance();
      op->emitOpError("expects a dimension below the rank (")
          << type.getRank() << "), got " << *dim;
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
