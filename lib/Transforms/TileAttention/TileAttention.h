//===- TileAttention.h - Expand kvcache.attention to fragments --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H

#include "../Attention/AttentionChoices.h"

namespace mlir::kvcache {

/// Makes the kernels of an op whose plan has fragments.
void tileAttention(AttentionOp op, const Frame &frame, const TilePlan &plan);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H
