//===- BulkRows.h - Bulk copies of single rows ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_BULKROWS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_BULKROWS_H

#include "Blocks.h"

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

/// Emits bulk copies of single rows by the lanes of a warp, and does not erase
/// the copy. Each lane adds the bytes of its rows to the barrier. Rows that
/// don't exist have no bytes; the lanes fill them with zeros.
void emitBulkRows(OpBuilder &builder, TileCopyOpInterface copy, Threads lanes,
                  Barrier barrier);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_BULKROWS_H
