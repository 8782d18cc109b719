//===- BulkRows.h - Bulk copies of single rows ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_BULKROWS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_BULKROWS_H

#include "Blocks.h"

namespace mlir::kvcache {

/// Does the work of a copy at its place, by bulk copies of single rows in the
/// lanes of a warp, and leaves the copy there. The barrier learns of their
/// bytes here: those of rows that don't exist, which are zeroed by stores,
/// don't count.
void emitBulkRows(OpBuilder &builder, Operation *copy, Threads lanes,
                  Barrier barrier);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_BULKROWS_H
