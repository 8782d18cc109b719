//===- AttentionCPU.h - Attention on a CPU ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ATTENTIONCPU_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ATTENTIONCPU_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// Expands attention to loops of a CPU.
void expandForCPU(AttentionOp op, const Frame &frame);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_ATTENTIONCPU_H
