//===- PlanAttention.cpp - Choose the configs of attention ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompleteConfig.h"
#include "kvcache/Transforms/Passes.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_PLANATTENTION
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct PlanAttention : kvcache::impl::PlanAttentionBase<PlanAttention> {
  using PlanAttentionBase::PlanAttentionBase;

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) { ops.push_back(op); });
    if (ops.empty())
      return markAllAnalysesPreserved();
    FailureOr<Target> target = Target::lookup(ops.front(), chips);
    if (failed(target))
      return signalPassFailure();
    for (AttentionOp op : ops)
      if (failed(plan(op, *target)))
        return signalPassFailure();
  }

private:
  static LogicalResult plan(AttentionOp op, const Target &target) {
    FailureOr<AttentionConfig> config = completeConfig(op, target);
    if (failed(config))
      return failure();
    op.setConfigAttr(AttentionConfigAttr::get(op.getContext(), *config));
    return success();
  }
};

} // namespace
