//===- Tcgen05Kernel.h - Attention in tensor memory -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TCGEN05KERNEL_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TCGEN05KERNEL_H

#include "../PlanAttention/TileSizes.h"

namespace mlir::kvcache {

/// Makes the kernel of an op whose scores, probs and accumulator are in
/// tensor memory.
void tileTcgen05(AttentionOp op, const Frame &frame,
                 const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TCGEN05KERNEL_H
