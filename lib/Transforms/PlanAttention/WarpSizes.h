//===- WarpSizes.h - The work of a warp without tensor cores ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_WARPSIZES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_WARPSIZES_H

#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// How a warp divides its work without tensor cores.
struct WarpSizes {
  /// Lanes that share a token, and elements of a key and of a value that a lane
  /// loads at once. They differ only where bytes of one cache have more.
  int64_t lanes = 0, keyWidth = 0, valueWidth = 0;
  /// Query heads of a warp, and tokens of a lane whose loads are in flight.
  int64_t rows = 1, tokens = 4;
};

/// Computes the sizes of an op's warps from its types.
WarpSizes computeWarpSizes(AttentionOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_WARPSIZES_H
