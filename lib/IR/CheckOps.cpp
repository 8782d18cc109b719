//===- CheckOps.cpp - Run-time checks -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/CheckOps.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::kvcache;

LogicalResult CheckOp::canonicalize(CheckOp op, PatternRewriter &rewriter) {
  std::optional<int64_t> value = getConstantIntValue(op.getValue());
  std::optional<int64_t> bound = getConstantIntValue(op.getBound());
  if (!value || !bound || uint64_t(*value) >= uint64_t(*bound))
    return rewriter.notifyMatchFailure(op, "not known to hold");
  rewriter.eraseOp(op);
  return success();
}
