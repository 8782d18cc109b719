//===- WgmmaKernel.h - Attention of warpgroups over fragments ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_WGMMAKERNEL_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_WGMMAKERNEL_H

#include "../PlanAttention/TileSizes.h"

namespace mlir::kvcache {

/// Makes the kernel of an op whose warpgroups multiply by `wgmma`, one product
/// after the other.
void tileWgmma(AttentionOp op, const Frame &frame,
               const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_WGMMAKERNEL_H
