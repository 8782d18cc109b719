//===- TileSizes.cpp - Numbers that follow from a config ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileSizes.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::isSwapAB(const AttentionConfig &config) {
  return config.swapAB.value_or(false);
}

bool kvcache::dequantizesInRegisters(const AttentionConfig &config) {
  return config.dequant == DequantPlace::Registers;
}

bool kvcache::hasProducers(const AttentionConfig &config) {
  return config.schedule == Schedule::Pipelined ||
         config.schedule == Schedule::PingPong || hasRoles(config);
}

bool kvcache::hasRoles(const AttentionConfig &config) {
  return config.schedule == Schedule::Roles;
}

bool kvcache::isPair(const AttentionConfig &config) {
  return config.schedule == Schedule::Pair;
}

bool kvcache::isPersistent(const AttentionConfig &config) {
  return config.persistent.value_or(0) != 0;
}

bool kvcache::mergesInCluster(const AttentionConfig &config) {
  return config.merge == SplitMerge::Cluster;
}

int64_t kvcache::countThreads(const AttentionConfig &config) {
  if (hasRoles(config))
    return *config.rows;
  return isSwapAB(config)
             ? kWarpgroup
             : *config.rows / kRowsOfWarp * *config.accShares * kWarp;
}

int64_t kvcache::countProducerWarps(const AttentionConfig &config) {
  if (hasRoles(config))
    return 1;
  return hasProducers(config) ? kWarpgroup / kWarp : 0;
}

int64_t kvcache::countAhead(const AttentionConfig &config) {
  return std::max(*config.stages - 1, *config.rawStages);
}

int64_t kvcache::countSplitColumns(int64_t valueSize) {
  constexpr int64_t margin = 8;
  return valueSize + margin;
}

EvictionAttr kvcache::getHint(MLIRContext *context,
                              const AttentionConfig &config) {
  return config.l2Hint == Eviction::Normal
             ? EvictionAttr()
             : EvictionAttr::get(context, *config.l2Hint);
}

int64_t kvcache::getTileAlignment(AttentionOp op, int64_t tokens) {
  for (Value cache : {Value(op.getKeyCache()), op.getValues()}) {
    int64_t size = cast<CacheTypeInterface>(cache.getType()).getPageSize();
    tokens = ShapedType::isDynamic(size) ? 1 : std::gcd(tokens, size);
  }
  return tokens;
}

bool kvcache::hasLongBoxes(AttentionOp op, int64_t tokens) {
  constexpr int64_t least = 16;
  return getTileAlignment(op, tokens) >= least;
}
