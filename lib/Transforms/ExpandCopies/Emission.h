//===- Emission.h - What copies into tiles are made of ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EMISSION_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EMISSION_H

#include "Blocks.h"
#include "Choice.h"

namespace mlir::kvcache {

/// The bytes that fill the tile of a copy.
int64_t getTileBytes(Operation *copy);

// Each does the work of a copy at its place, and leaves the copy there. Some
// complete for the thread itself, some with its `cp.async` groups, and some on
// a barrier that counts bytes.

/// By loads and stores of the threads.
void emitPlain(OpBuilder &builder, Operation *copy, Threads threads);
/// By cp.async of the threads.
void emitAsyncCopy(OpBuilder &builder, Operation *copy, const Choice &choice,
                   Threads threads);
/// By bulk copies of single rows, in the lanes of a warp. The barrier learns of
/// their bytes here: those of rows that don't exist, which are zeroed by
/// stores, don't count.
void emitBulkRows(OpBuilder &builder, Operation *copy, Threads lanes,
                  Barrier barrier);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EMISSION_H
