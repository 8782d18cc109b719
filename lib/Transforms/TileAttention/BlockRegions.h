//===- BlockRegions.h - Regions of attention in a block ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_BLOCKREGIONS_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_BLOCKREGIONS_H

#include "TileRows.h"

namespace mlir::kvcache {

/// Emits a region for a row of the block and a token, and returns what it
/// yields. The score is null for the region `mask`.
Value emitRegion(const TileRows &block, Region &region, Value score, Value row,
                 Value token);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_BLOCKREGIONS_H
