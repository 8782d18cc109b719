//===- TileWrites.h - Writes to the tiles of a pipe -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_TILEWRITES_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_TILEWRITES_H

#include "kvcache/IR/PipeOps.h"

namespace mlir::kvcache {

/// Whether code that uses a slot may write to its tiles.
bool mayWriteTiles(ConsumeOp consume);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_TILEWRITES_H
