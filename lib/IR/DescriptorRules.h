//===- DescriptorRules.h - Descriptors that fit a tile ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_DESCRIPTORRULES_H
#define KVCACHE_LIB_IR_DESCRIPTORRULES_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// Checks that copies with the descriptor write the layout of the tile.
LogicalResult verifyLayout(Operation *op, TMATileType descriptor,
                           TileType tile);

/// Checks that `rows` rows of the tile are whole boxes, and that each box
/// starts at an address that tensor copies can write to.
LogicalResult verifyPartOfRows(Operation *op, TMATileType descriptor,
                               int64_t rows);

/// Checks that gathers of four rows with the descriptor can fill the tile.
LogicalResult verifyGather(Operation *op, TMATileType descriptor,
                           TileType tile);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_DESCRIPTORRULES_H
