//===- ExpandOps.cpp - Expand ops on whole caches -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"

#include "../Attention/MergeSplits.h"
#include "../Attention/SplitAttention.h"
#include "../Attention/Workspace.h"
#include "../AttentionCPU/AttentionCPU.h"
#include "../PlanAttention/CompleteConfig.h"
#include "../PlanAttention/ConfigRemarks.h"
#include "../Selection/IndexScores.h"
#include "../Selection/Pool.h"
#include "../Selection/TopRows.h"
#include "../TileAttention/TileAttention.h"
#include "../WarpAttention/WarpAttention.h"
#include "kvcache/IR/DenseOperands.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EXPANDOPS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct ExpandOps : kvcache::impl::ExpandOpsBase<ExpandOps> {
  using ExpandOpsBase::ExpandOpsBase;

  void runOnOperation() override {
    if (!llvm::is_contained({128, 256, 512}, vectorBits)) {
      getOperation()->emitError("'kvcache-expand-ops' expects 'vector-bits' to "
                                "be 128, 256 or 512, got ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    if (mma != HostMma::FMA && vectorBits != 512) {
      getOperation()->emitError("'kvcache-expand-ops' expects 'vector-bits' to "
                                "be 512 with matrix instructions, got ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    Operation *first = findFirst();
    if (!first)
      return markAllAnalysesPreserved();
    FailureOr<Target> known = Target::lookup(first, chips);
    if (failed(known))
      return signalPassFailure();
    target = *known;
    target->vectorBits = vectorBits;
    target->threads = threads;
    target->mma = mma;
    if (!forGPU && failed(joinAllSplits()))
      return signalPassFailure();
    WalkResult result = getOperation()->walk([&](Operation *op) {
      return visit(op, [&](auto known) { return expandOne(known); });
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Calls a function with an op that the pass expands.
  template <typename FunctionT>
  static WalkResult visit(Operation *op, FunctionT function) {
    return TypeSwitch<Operation *, WalkResult>(op)
        .Case<AppendOp, AttentionOp, GatherOp, CopyOp, CopyPagesOp,
              IndexScoresOp, MergeSplitsOp, MergeStatesOp, PoolOp, RemapRowsOp,
              TopRowsOp, WorkspaceSizeOp>(function)
        .Default(WalkResult::advance());
  }

  /// The first op that the pass expands, or null.
  Operation *findFirst() {
    Operation *first = nullptr;
    getOperation()->walk([&](Operation *op) {
      return visit(op, [&](auto known) {
        first = known;
        return WalkResult::interrupt();
      });
    });
    return first;
  }

  LogicalResult joinAllSplits() {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (op.getPartial())
        ops.push_back(op);
    });
    bool isJoined = true;
    for (AttentionOp op : ops)
      isJoined &= succeeded(joinSplits(op));
    return success(isJoined);
  }

  template <typename OpTy> WalkResult expandOne(OpTy op) {
    if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>)) {
      op.emitOpError("has tensors, which 'one-shot-bufferize' makes memrefs "
                     "before this pass");
      return WalkResult::interrupt();
    }
    if (op->template getParentOfType<gpu::GPUModuleOp>() ||
        op->template getParentOfType<scf::ParallelOp>()) {
      op.emitOpError("is for host code, outside of kernels and parallel loops");
      return WalkResult::interrupt();
    }
    if constexpr (std::is_same_v<OpTy, AttentionOp>) {
      if (forGPU) {
        if (failed(expandForGPU(op)))
          return WalkResult::interrupt();
      } else {
        replace(op, [&](const Frame &frame) { expandForCPU(op, frame); });
      }
    } else {
      replace(op, [&](const Frame &frame) { expand(op, frame); });
    }
    ++numExpanded;
    return WalkResult::skip();
  }

  LogicalResult expandForGPU(AttentionOp op) {
    FailureOr<AttentionConfig> config = completeConfig(op, *target);
    if (failed(config) || failed(verifySplitsAreLeft(op)))
      return failure();
    if (config->mma != MmaKind::None) {
      tileAttention(op, *config, *target, checks);
      return success();
    }
    remarkTileObstacle(op);
    remarkConfig(op, *config);
    replace(op,
            [&](const Frame &frame) { expandForWarps(op, frame, *config); });
    return success();
  }

  /// Replaces an op by what a function emits.
  template <typename OpTy>
  void replace(OpTy op, function_ref<void(const Frame &)> emit) {
    OpBuilder builder(op);
    Frame frame(builder, op, forGPU, checks, *target);
    for (DenseOperand operand : getVectorOperands(op))
      frame.checkAlignment(operand.name, operand.value);
    emit(frame);
    op.erase();
  }

  std::optional<Target> target;
};

} // namespace
