//===- AttentionShape.cpp - Properties of attention for choices -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"

#include "AttentionSizes.h"

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
      tokens(op.getRows()      ? Tokens::Ids
             : op.splitsKeys() ? Tokens::SequenceInSplits
                               : Tokens::Sequence),
      hasSplits(op.splitsKeys()), heads(countGroupHeads(op)),
      keySize(op.getKeySize()), valueSize(getLastSize(op.getOut())),
      bits(std::min(getBits(op.getKeyCache()), getBits(op.getValues()))),
      hasBegin(op.getWindow() || op.getChunk() || op.getRanges()),
      canOverlap(op.getModifiers().empty() && !op.getWholeMask() &&
                 !hasGaps(op.getRanges()) &&
                 (!op.getRanges() || valueSize <= kMostOfRanges)) {}
