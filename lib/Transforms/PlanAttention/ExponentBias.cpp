//===- ExponentBias.cpp - Exponents that probs are relative to ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExponentBias.h"

#include "TileStaging.h"

using namespace mlir;
using namespace mlir::kvcache;

float kvcache::getExponentSlack(AttentionOp op) {
  constexpr float slack = 8;
  return op.getMaxLogits() ? 0 : slack;
}

float kvcache::getExponentBias(AttentionOp op, const AttentionConfig &config) {
  // Probs of f16 are at most 2^15.
  constexpr float most = 15;
  if (config.mma == MmaKind::None)
    return 0;
  if (config.dequant == DequantPlace::Registers) {
    auto values = cast<CacheTypeInterface>(op.getValues().getType());
    // Scales times their powers are below 4.
    bool areScaled = values.isQuantized() && !areElementsScaled(op.getValues());
    return areScaled ? most - 2 : most;
  }
  FloatType element = op.getTileElement(op.getValues());
  if (!element || !element.isF16())
    return 0;
  return config.mma == MmaKind::Tcgen05 ? most - getExponentSlack(op) : most;
}
