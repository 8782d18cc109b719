//===- FindOps.h - Find ops of a type ---------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_FINDOPS_H
#define KVCACHE_SUPPORT_FINDOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// Returns the ops of a type at or below `root`, in order, except for ops
/// inside another such op or inside a `ClosedOp`. Close functions to skip their
/// bodies, which are most of a module.
template <typename OpTy, typename... ClosedOps>
SmallVector<OpTy> findOps(Operation *root) {
  SmallVector<OpTy> found;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto match = dyn_cast<OpTy>(op);
    if (match)
      found.push_back(match);
    return match || (isa<ClosedOps>(op) || ...) ? WalkResult::skip()
                                                : WalkResult::advance();
  });
  return found;
}

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_FINDOPS_H
