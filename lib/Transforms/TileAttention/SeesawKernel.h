//===- SeesawKernel.h - Latent attention of two warpgroups ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWKERNEL_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWKERNEL_H

#include "../PlanAttention/TileSizes.h"

namespace mlir::kvcache {

/// Makes the kernel of an op over a latent cache, whose two warpgroups compute
/// the scores of a tile in turns.
void tileSeesaw(AttentionOp op, const Frame &frame,
                const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_SEESAWKERNEL_H
