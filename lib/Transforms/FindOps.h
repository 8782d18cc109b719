//===- FindOps.h - Ops of a type, by a short walk ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_FINDOPS_H
#define KVCACHE_LIB_TRANSFORMS_FINDOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// The ops of a type at or below `root`, in order, except those inside another
/// one or inside a `ClosedOp`. Most of a module is the bodies of its functions:
/// what is not in one of them should not be looked for there.
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

#endif // KVCACHE_LIB_TRANSFORMS_FINDOPS_H
