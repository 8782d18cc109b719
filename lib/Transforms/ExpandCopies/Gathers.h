//===- Gathers.h - Tensor copies of any rows --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_GATHERS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_GATHERS_H

#include "Blocks.h"

#include "kvcache/IR/KVCache.h"

namespace mlir::kvcache {

/// Does the work of a gather by `tma_gather4` of the issuer. Lanes compute
/// where the rows are; then one of them issues, in a loop if there is much to.
void emitGather(const IndexBuilder &b, AsyncGatherTileOp op,
                TypedValue<TMATileType> descriptor, Barrier barrier,
                const Issuer &issuer);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_GATHERS_H
