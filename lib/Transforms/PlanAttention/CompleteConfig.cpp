//===- CompleteConfig.cpp - The config of an op with all fields -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompleteConfig.h"

#include "HintChoice.h"
#include "TileChoices.h"
#include "WarpSizes.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Emits an error for a field of tiles, which a warp for each row has not.
static LogicalResult verifyHasNoTiles(AttentionOp op) {
  AttentionConfig config = op.getFields();
  config.keys = config.stages = config.accShares = config.rawStages =
      config.convertLoads = std::nullopt;
  config.dequant = std::nullopt;
  config.schedule = std::nullopt;
  // A grid, keys on the right, and a second launch are what such a kernel has.
  if (config.persistent != 0)
    config.persistent = std::nullopt;
  if (config.swapAB != false)
    config.swapAB = std::nullopt;
  if (config.merge != SplitMerge::Launch)
    config.merge = std::nullopt;
  if (config == op.getFields())
    return success();
  return op.emitOpError(
             "expects 'config' to have an 'mma', or no fields of tiles, "
             "for a kernel without tensor cores, got ")
         << op.getConfigAttr();
}

FailureOr<AttentionConfig> kvcache::completeConfig(AttentionOp op,
                                                   const Target &target) {
  AttentionShape shape(op);
  if (int64_t rows = chooseRows(op, shape))
    return planTiles(op, shape, rows, target);
  if (failed(verifyHasNoTiles(op)))
    return failure();
  AttentionConfig config;
  config.mma = MmaKind::None;
  config.l2Hint = chooseHint(op, shape, computeWarpSizes(op).rows);
  return config;
}
