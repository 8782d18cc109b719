//===- MmaSyncKernel.h - Attention of warps over fragments ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_MMASYNCKERNEL_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_MMASYNCKERNEL_H

#include "../PlanAttention/TileSizes.h"

namespace mlir::kvcache {

/// Makes the kernel of an op whose warps multiply by `mma.sync`.
void tileMmaSync(AttentionOp op, const Frame &frame,
                 const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_MMASYNCKERNEL_H
