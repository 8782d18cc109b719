//===- Attention.cpp - Expansions of attention ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "../ExpandOps/ExpandOps.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::kvcache;

static remark::RemarkOpts getRemarkOptions() {
  return remark::RemarkOpts::name("attention").category("kvcache-expand-ops");
}

void kvcache::remarkConfig(AttentionOp op, const AttentionConfig &config) {
  std::string text;
  llvm::raw_string_ostream(text)
      << AttentionConfigAttr::get(op.getContext(), config);
  remark::passed(op.getLoc(), getRemarkOptions()) << text;
}

void kvcache::expand(AttentionOp op, const Frame &frame) {
  if (!frame.isGPU)
    return expandForCPU(op, frame);
  if (std::string obstacle = op.getTileObstacle(); !obstacle.empty())
    remark::missed(op.getLoc(), getRemarkOptions())
        << "no tensor cores" << remark::reason("{0}", obstacle);
  WarpPlan warps = chooseWarps(op);
  remarkConfig(op, getConfig(warps));
  expandForGPU(op, frame, warps);
}
