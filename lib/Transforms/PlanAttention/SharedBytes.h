//===- SharedBytes.h - Shared memory of tiles -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SHAREDBYTES_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SHAREDBYTES_H

#include "AttentionShape.h"

namespace mlir::kvcache {

/// The bytes of queries and tiles in shared memory. Those of latent rows are
/// keys and values.
int64_t countBytes(AttentionOp op, const AttentionShape &shape,
                   const AttentionConfig &config);
/// The bytes of shared memory of a kernel with a complete config.
int64_t countSharedBytes(AttentionOp op, const AttentionShape &shape,
                         const AttentionConfig &config);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_SHAREDBYTES_H
