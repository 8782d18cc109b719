//===- SplitAttention.cpp - Separate attention and the merge of splits ----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitAttention.h"

#include "../PlanAttention/AttentionSizes.h"
#include "../PlanAttention/BlockShape.h"
#include "../PlanAttention/ExponentBias.h"
#include "BlockTokens.h"
#include "RowNormalizer.h"

#include "kvcache/IR/PipeOps.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_SPLITATTENTION
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// Whether an op has splits in a workspace, and no op that merges them yet.
static bool lacksMerge(AttentionOp op) {
  return op.getWorkspace() && !op.getPartial() && !op.mergesInCluster();
}

LogicalResult kvcache::verifySplitsAreLeft(AttentionOp op) {
  if (!lacksMerge(op))
    return success();
  return op.emitOpError("expects 'partial' with 'workspace': "
                        "'kvcache-split-attention' adds it, and the op that "
                        "merges splits");
}

/// The first operand or attribute of rows that a merge does not share with the
/// op whose splits it merges, or an empty name.
static StringRef findDifference(AttentionOp op, MergeSplitsOp merge) {
  RowOperands own = RowOperands::get(op), other = RowOperands::get(merge);
  std::pair<StringRef, bool> areEqual[] = {
      {"row_offsets", op.getRowOffsets() == merge.getRowOffsets()},
      {"lse", own.lse == other.lse},
      {"max_logits", own.maxLogits == other.maxLogits},
      {"sinks", own.sinks == other.sinks},
      {"value_scale", own.valueScale == other.valueScale},
      {"out_scale", own.outScale == other.outScale},
      {"sinkless_lse", own.hasSinklessLse == other.hasSinklessLse},
      {"split", op.getSplitOrDefault() == merge.getSplitOrDefault()}};
  const auto *found =
      llvm::find_if(areEqual, [](const auto &each) { return !each.second; });
  return found == std::end(areEqual) ? StringRef() : found->first;
}

LogicalResult kvcache::joinSplits(AttentionOp op) {
  Operation *next = op->getNextNode();
  while (next && isMemoryEffectFree(next))
    next = next->getNextNode();
  auto merge = dyn_cast_if_present<MergeSplitsOp>(next);
  if (!merge || merge.getWorkspace() != op.getWorkspace() ||
      merge.getOut() != op.getOut())
    return op.emitOpError("expects 'merge_splits' of its 'workspace' and 'out' "
                          "after 'partial' on a CPU, which splits no rows");
  StringRef difference = findDifference(op, merge);
  if (!difference.empty())
    return merge.emitOpError("expects '")
           << difference
           << "' of the 'attention' before on a CPU, which splits no rows";
  op.setPartial(false);
  merge.erase();
  return success();
}

namespace {

/// How the tokens that rows see are divided: the rows of a block, and the
/// tokens of a tile.
struct BlockDivision {
  int64_t rows, tokens;

  explicit BlockDivision(AttentionOp op) {
    AttentionConfig config = op.getFields();
    // A warp computes a token's rows.
    bool hasTiles = config.mma != MmaKind::None;
    rows = hasTiles ? *config.rows : AttentionSizes(op).group;
    tokens = hasTiles ? *config.keys : 1;
  }
};

} // namespace

/// Emits the region `count` of a merge: the splits of the tokens that the query
/// rows of a thread block see.
static void emitCount(MergeSplitsOp merge, AttentionOp op, const Frame &frame) {
  OpBuilder::InsertionGuard guard(frame.builder);
  SmallVector<Type> types(4, frame.builder.getIndexType());
  Block *body = frame.builder.createBlock(&merge.getCount(), {}, types,
                                          SmallVector<Location>(4, frame.loc));
  BlockDivision division(op);
  int64_t perBlock = BlockShape(op, division.rows).perBlock;
  QueryRows rows{body->getArgument(0), body->getArgument(1),
                 body->getArgument(2), Value(), Value()};
  Value i = body->getArgument(3);
  Value first = frame.sub(i, frame.rem(i, perBlock));
  BlockTokens tokens(frame, op, division.tokens, perBlock);
  YieldOp::create(frame.builder, frame.loc,
                  tokens.countSplits(KeySplits(frame, op), rows, first));
}

static void split(AttentionOp op) {
  op.setPartial(true);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  RowOperands operands = RowOperands::get(op);
  auto merge = MergeSplitsOp::create(
      builder, op.getLoc(), op.getWorkspace(), op.getRowOffsets(), operands.out,
      operands.lse, operands.maxLogits, operands.sinks, operands.valueScale,
      operands.outScale, operands.hasSinklessLse,
      APFloat(getExponentBias(op, op.getFields())), op.getSplitAttr());
  emitCount(
      merge, op,
      Frame(builder, merge, /*isGPU=*/true, /*hasChecks=*/false, Target({})));
}

namespace {

struct SplitAttention : kvcache::impl::SplitAttentionBase<SplitAttention> {
  using SplitAttentionBase::SplitAttentionBase;

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (lacksMerge(op) && !hasTensors(op))
        ops.push_back(op);
    });
    for (AttentionOp op : ops) {
      if (!op.decidesSplits()) {
        op.emitOpError("expects a 'config' that has 'mma', 'rows', 'keys' and "
                       "'dequant', which 'kvcache-plan-attention' chooses");
        signalPassFailure();
        continue;
      }
      split(op);
      ++numSplit;
    }
    if (ops.empty())
      markAllAnalysesPreserved();
  }

private:
  /// `kvcache-expand-ops` reports these.
  static bool hasTensors(AttentionOp op) {
    return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
  }
};

} // namespace
