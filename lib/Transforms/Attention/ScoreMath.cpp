//===- ScoreMath.cpp - From products to scores ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreMath.h"

#include "../Builders/Heads.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

/// The largest cap of scores within 2^-16, of hyperbolic tangents within 2^-23.
constexpr double kMostRoundedCap = 128;

Value ScoreMath::getFactor() const {
  if (op.getSoftCap())
    return f.div(op.getScale(), f.constant(op.getSoftCap()->convertToDouble()));
  return op.getScoreRegion()
             ? op.getScale()
             : f.mul(op.getScale(), f.constant(llvm::numbers::log2e));
}

Value ScoreMath::getFactor(Value factor, Value head, Value queryHead) const {
  if (Value scale = loadStaticScale(frame, op.getQueryScale(), queryHead))
    factor = f.mul(factor, scale);
  Value scale = loadStaticScale(frame, op.getKeyScale(), head);
  return scale ? f.mul(factor, scale) : factor;
}

Value ScoreMath::applySoftCap(Value products) const {
  if (!op.getSoftCap())
    return products;
  double cap = op.getSoftCap()->convertToDouble();
  Value tanh = f.tanh(products, /*isSmallExact=*/cap > kMostRoundedCap);
  if (!op.getScoreRegion())
    cap *= llvm::numbers::log2e;
  return f.mul(tanh, f.constant(products.getType(), cap));
}

Value ScoreMath::isAdmitted(Value isSeen, Value scores) const {
  if (op.getModifiers().empty())
    return isSeen;
  Value none = f.constant(scores, -std::numeric_limits<float>::infinity());
  Value isScore = arith::CmpFOp::create(
      frame.builder, frame.loc, arith::CmpFPredicate::UNE, scores, none);
  return arith::AndIOp::create(frame.builder, frame.loc, isSeen, isScore);
}
