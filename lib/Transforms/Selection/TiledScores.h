//===- TiledScores.h - Index scores on tensor cores -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_TILEDSCORES_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_TILEDSCORES_H

#include "KeyTiles.h"

namespace mlir::kvcache {

/// Emits a kernel that scores tiles of keys on tensor cores.
void tileIndexScores(IndexScoresOp op, const Frame &frame,
                     const KeyTiles &tiles);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_TILEDSCORES_H
