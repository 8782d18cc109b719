//===- IndexScores.h - Scores of tokens by index keys -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SELECTION_INDEXSCORES_H
#define KVCACHE_LIB_TRANSFORMS_SELECTION_INDEXSCORES_H

#include "../Builders/Frame.h"
#include "kvcache/IR/SelectionOps.h"

namespace mlir::kvcache {

/// Builds the scores of tokens for sparse attention.
void expand(IndexScoresOp op, const Frame &frame);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SELECTION_INDEXSCORES_H
