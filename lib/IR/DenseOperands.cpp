//===- DenseOperands.cpp - Arrays that are accessed by vectors ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/DenseOperands.h"

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/CacheShape.h"
#include "kvcache/IR/SelectionOps.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/IR/WholeCacheOps.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

SmallVector<DenseOperand> kvcache::getVectorOperands(Operation *op) {
  using Operands = SmallVector<DenseOperand>;
  auto operands =
      TypeSwitch<Operation *, Operands>(op)
          .Case([](AppendOp append) -> Operands {
            return {{"keys", append.getKeys()},
                    {"latent_rope", append.getLatentRope()},
                    {"values", append.getValues()},
                    {"norm", append.getNorm()},
                    {"query_norm", append.getQueryNorm()},
                    {"rope", append.getRope()},
                    {"queries", append.getQueries()},
                    {"query_out", append.getQueryOut()}};
          })
          .Case([](AttentionOp attention) -> Operands {
            return {{"q", attention.getQ()},
                    {"q_rope", attention.getQRope()},
                    {"out", attention.getOut()},
                    {"workspace", attention.getWorkspace()}};
          })
          .Case([](GatherOp gather) -> Operands {
            return {{"keys", gather.getKeys()}, {"values", gather.getValues()}};
          })
          .Case([](PoolOp pool) -> Operands {
            return {{"pooled", pool.getPooled()},
                    {"new_rows", pool.getNewRows()}};
          })
          .Case([](IndexScoresOp index) -> Operands {
            return {{"q", index.getQ()}};
          })
          .Case([](MergeSplitsOp merge) -> Operands {
            return {{"workspace", merge.getWorkspace()},
                    {"out", merge.getOut()}};
          })
          .Case([](MergeStatesOp merge) -> Operands {
            return {{"splits", merge.getSplits()}, {"out", merge.getOut()}};
          })
          .Default([](Operation *) { return Operands(); });
  llvm::erase_if(operands, [](DenseOperand operand) { return !operand.value; });
  return operands;
}

int64_t kvcache::getRowAlignment(MemRefType type) {
  int64_t last = type.getShape().back();
  if (ShapedType::isDynamic(last))
    return kPromisedAlignment;
  return llvm::MinAlign(kPromisedAlignment,
                        last * (type.getElementTypeBitWidth() / 8));
}
