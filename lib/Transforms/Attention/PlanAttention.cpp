//===- PlanAttention.cpp - Choose the configs of attention ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionChoices.h"
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
    SmallVector<const Chip *> known;
    for (const std::string &name : chips) {
      known.push_back(lookupChip(name));
      if (known.back())
        continue;
      getOperation()->emitError(getUnknownChipMessage(name));
      return signalPassFailure();
    }
    Target target(known);
    WalkResult result = getOperation()->walk([&](AttentionOp op) {
      return failed(plan(op, target)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  static LogicalResult plan(AttentionOp op, const Target &target) {
    FailureOr<std::optional<TilePlan>> tiles = planTiles(op, target);
    if (failed(tiles))
      return failure();
    AttentionConfig config =
        *tiles ? getConfig(**tiles) : getConfig(chooseWarps(op));
    op.setConfigAttr(AttentionConfigAttr::get(op.getContext(), config));
    return success();
  }
};

} // namespace
