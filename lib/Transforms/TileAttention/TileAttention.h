//===- TileAttention.h - Expand kvcache.attention to fragments --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H

#include "../PlanAttention/AttentionChoices.h"

namespace mlir::kvcache {

/// Replaces an op by its kernels over fragments. Returns whether it did: not
/// without tensor cores. Fails with a diagnostic for a config that the target
/// can't have.
FailureOr<bool> tileAttention(AttentionOp op, const Target &target,
                              bool checks);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H
