//===- Attention.cpp - Attention on a CPU, and of warps -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../AttentionCPU/AttentionCPU.h"
#include "../PlanAttention/ConfigRemarks.h"
#include "../WarpAttention/WarpAttention.h"
#include "ExpandOps.h"

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::expand(AttentionOp op, const Frame &frame) {
  if (!frame.isGPU)
    return expandForCPU(op, frame);
  remarkTileObstacle(op);
  WarpPlan warps = chooseWarps(op);
  remarkConfig(op, getConfig(warps));
  expandForWarps(op, frame, warps);
}
