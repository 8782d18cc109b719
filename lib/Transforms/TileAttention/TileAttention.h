//===- TileAttention.h - Expand kvcache.attention to fragments --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Replaces an op by its kernel over fragments. The config is complete, with
/// tensor cores, and the op leaves its splits to `merge_splits`.
void tileAttention(AttentionOp op, const AttentionConfig &config,
                   const Target &target, bool checks);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILEATTENTION_TILEATTENTION_H
