//===- PairKernel.h - Latent attention of two thread blocks -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIRKERNEL_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIRKERNEL_H

#include "../PlanAttention/TileSizes.h"

namespace mlir::kvcache {

/// Makes the kernel of an op over a latent cache, whose thread blocks multiply
/// in pairs.
void tilePair(AttentionOp op, const Frame &frame,
              const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_PAIRKERNEL_H
