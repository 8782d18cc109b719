//===- Pool.h - Summaries of groups of tokens -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_POOL_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_POOL_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SelectionOps.h"

namespace mlir::kvcache {

/// Builds the summaries of groups of tokens.
void expand(PoolOp op, const Frame &frame);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_POOL_H
