//===- AttentionShape.cpp - Properties of attention for choices -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"

#include "../ExpandOps/Heads.h"
#include "../TileAttention/TileList.h"
#include "../TileAttention/TiledCache.h"
#include "SeenRanges.h"

using namespace mlir;
using namespace mlir::kvcache;

static int64_t getBits(Value cache) {
  return cast<CacheTypeInterface>(cache.getType())
      .getElementType()
      .getIntOrFloatBitWidth();
}

static int64_t getLastSize(Value rows) {
  return cast<ShapedType>(rows.getType()).getDimSize(2);
}

static int64_t countGroupHeads(AttentionOp op) {
  auto cache = cast<CacheTypeInterface>(op.getKeyCache().getType());
  return cast<ShapedType>(op.getQ().getType()).getDimSize(1) /
         cache.getNumHeads();
}

AttentionShape::AttentionShape(AttentionOp op)
    : config(op.getFields()),
      caches(op.getValueCache() ? Caches::Values : Caches::Latent),
      tokens(op.getRows()        ? Tokens::Ids
             : op.getWorkspace() ? Tokens::SequenceInSplits
                                 : Tokens::Sequence),
      hasSplits(op.getWorkspace()), heads(countGroupHeads(op)),
      keySize(op.getKeySize()), valueSize(getLastSize(op.getOut())),
      bits(std::min(getBits(op.getKeyCache()), getBits(op.getValues()))),
      hasBegin(op.getWindow() || op.getChunk() || op.getRanges()),
      canOverlap(op.getModifiers().empty() && !op.getWholeMask() &&
                 !hasGaps(op.getRanges()) &&
                 (!op.getRanges() || valueSize <= kMostOfRanges)) {}

/// The bytes of the list of tiles that rows with several ranges see.
static int64_t countListBytes(AttentionOp op) {
  return hasGaps(op.getRanges()) ? TileList::countBytes() : 0;
}

int64_t kvcache::countBytes(AttentionOp op, const AttentionShape &shape,
                            const TilePlan &plan) {
  bool isLatent = shape.caches == Caches::Latent;
  int64_t tokenSize = shape.keySize + (isLatent ? 0 : shape.valueSize);
  int64_t elements =
      plan.rows * shape.keySize + plan.stages * plan.tokens * tokenSize;
  if (plan.swapAB)
    elements += plan.rows * plan.tokens;
  int64_t raw = op.getRopeCache()
                    ? countPairBytes(op, plan.tokens, plan.rawStages)
                    : plan.rawStages * plan.tokens * tokenSize;
  return 2 * elements + raw + countListBytes(op);
}

/// The bytes of queries and of raw tiles that warps multiply, with scales of
/// the tile in use and of the next.
static int64_t countRawBytes(AttentionOp op, const AttentionShape &shape,
                             const TilePlan &plan) {
  int64_t groups = countScaleGroups(op.getKeyCache(), shape.keySize) +
                   countScaleGroups(op.getValues(), shape.valueSize);
  int64_t scaleBytes = 2 * 4 * groups * plan.countThreads() / kWarp;
  return 2 * plan.rows * shape.keySize +
         plan.tokens *
             (plan.stages * (shape.keySize + shape.valueSize) + scaleBytes) +
         countListBytes(op);
}

int64_t kvcache::countSharedBytes(AttentionOp op, const AttentionShape &shape,
                                  const TilePlan &plan) {
  return plan.dequantizesInRegisters ? countRawBytes(op, shape, plan)
                                     : countBytes(op, shape, plan);
}
