//===- WarpAttention.h - Attention of warps ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPATTENTION_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Expands attention to a grid of warps, which use no tensor cores. The config
/// is complete.
void expandForWarps(AttentionOp op, const Frame &frame,
                    const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_WARPATTENTION_WARPATTENTION_H
