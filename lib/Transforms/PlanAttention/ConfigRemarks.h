//===- ConfigRemarks.h - What was chosen for attention ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_CONFIGREMARKS_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_CONFIGREMARKS_H

#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Emits a remark of `kvcache-expand-ops` that has the config of a kernel.
void remarkConfig(AttentionOp op, const AttentionConfig &config);
/// Emits one that says why the kernel of an op uses no tensor cores, if the op
/// can't have them.
void remarkTileObstacle(AttentionOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_CONFIGREMARKS_H
