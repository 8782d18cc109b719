//===- Attention.h - Expansions of attention --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_ATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_ATTENTION_H

#include "../ExpandOps/Frame.h"
#include "AttentionChoices.h"

namespace mlir::kvcache {

/// Emits a remark of `kvcache-expand-ops` that has the config of a kernel.
void remarkConfig(AttentionOp op, const AttentionConfig &config);

/// Expands attention for the CPU, and for warps without tensor cores.
void expandForCPU(AttentionOp op, const Frame &frame);
void expandForGPU(AttentionOp op, const Frame &frame, const WarpPlan &plan);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_ATTENTION_H
