//===- RolesKernel.h - Prompts by warps with roles --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLESKERNEL_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLESKERNEL_H

#include "../PlanAttention/TileSizes.h"

namespace mlir::kvcache {

/// Makes the kernel of an op whose warps copy, start products into tensor
/// memory, or compute the softmax of one of two query tiles.
void tileRoles(AttentionOp op, const Frame &frame,
               const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_ROLESKERNEL_H
