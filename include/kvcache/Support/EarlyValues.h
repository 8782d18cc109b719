//===- EarlyValues.h - Values computed an iteration early -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_EARLYVALUES_H
#define KVCACHE_SUPPORT_EARLYVALUES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {

/// The attribute of ops whose results are computed one iteration before they
/// are used, and that of loops whose iterations read nothing that others write.
/// Both are hints, which passes may lose.
inline constexpr llvm::StringLiteral kEarlyAttr = "early_values",
                                     kIndependentAttr =
                                         "independent_iterations";

/// Marks what computes these values.
inline void markEarly(ValueRange values) {
  for (Value value : values)
    if (Operation *op = value.getDefiningOp())
      op->setDiscardableAttr(kEarlyAttr, UnitAttr::get(op->getContext()));
}

inline bool isEarly(Operation *op) {
  return static_cast<bool>(op->getDiscardableAttr(kEarlyAttr));
}

/// Marks the loop of an induction variable.
inline void markIndependent(Value induction) {
  if (scf::ForOp loop = scf::getForInductionVarOwner(induction))
    loop->setDiscardableAttr(kIndependentAttr,
                             UnitAttr::get(loop.getContext()));
}

inline bool isIndependent(scf::ForOp loop) {
  return static_cast<bool>(loop->getDiscardableAttr(kIndependentAttr));
}

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_EARLYVALUES_H
