//===- TileChoices.h - Tiles of attention on tensor cores -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILECHOICES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILECHOICES_H

#include "AttentionShape.h"

namespace mlir::kvcache {

/// Chooses the query rows of a block; 0 if warps compute the op without tensor
/// cores.
int64_t chooseRows(AttentionOp op, const AttentionShape &shape);

/// Chooses all fields of the config of a kernel with tensor cores, for all
/// chips of a target and blocks of so many rows. Keeps the fields that are set,
/// or emits an error that says which of them the target can't have.
FailureOr<AttentionConfig> planTiles(AttentionOp op,
                                     const AttentionShape &shape, int64_t rows,
                                     const Target &target);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TILECHOICES_H
