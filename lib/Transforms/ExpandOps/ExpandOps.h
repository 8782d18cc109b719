//===- ExpandOps.h - Expansions of ops on whole caches ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDOPS_EXPANDOPS_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDOPS_EXPANDOPS_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/IR/WholeCacheOps.h"

namespace mlir::kvcache {

/// Builds the loops that an op stands for, with the frame's builder.
void expand(AppendOp op, const Frame &frame);
void expand(GatherOp op, const Frame &frame);
void expand(CopyOp op, const Frame &frame);
void expand(CopyPagesOp op, const Frame &frame);
void expand(MergeStatesOp op, const Frame &frame);
void expand(RemapRowsOp op, const Frame &frame);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDOPS_EXPANDOPS_H
