//===- PlanAttention.cpp - Choose the configs of attention ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompleteConfig.h"
#include "TuningFile.h"
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
    std::optional<TuningFile> file;
    if (!tuning.empty()) {
      auto read = TuningFile::read(ops.front().getLoc(), tuning, chips);
      if (failed(read))
        return signalPassFailure();
      file = std::move(*read);
    }
    for (AttentionOp op : ops)
      if (failed(plan(op, *target, file)))
        return signalPassFailure();
  }

private:
  static LogicalResult plan(AttentionOp op, const Target &target,
                            const std::optional<TuningFile> &file) {
    FailureOr<AttentionConfig> config = completeConfig(op, target);
    if (failed(config))
      return failure();
    if (file)
      config = file->choose(op, *config, target);
    op.setConfigAttr(AttentionConfigAttr::get(op.getContext(), *config));
    return success();
  }
};

} // namespace
