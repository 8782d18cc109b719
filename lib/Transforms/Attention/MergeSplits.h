//===- MergeSplits.h - The merge of splits of rows --------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_MERGESPLITS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_MERGESPLITS_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SplitOps.h"

namespace mlir::kvcache {

/// Expands the merge of splits, to a launch of its own on a GPU.
void expand(MergeSplitsOp op, const Frame &frame);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_MERGESPLITS_H
