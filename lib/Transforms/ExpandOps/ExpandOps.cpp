//===- ExpandOps.cpp - Expand ops on whole caches -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandOps.h"

#include "../Attention/AttentionChoices.h"
#include "../Attention/SplitAttention.h"
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
    SmallVector<const Chip *> known;
    for (const std::string &name : chips)
      known.push_back(lookupChip(name));
    // `kvcache-attach-targets` reports the others.
    target.emplace(llvm::is_contained(known, nullptr)
                       ? ArrayRef<const Chip *>()
                       : ArrayRef<const Chip *>(known));
    target->vectorBits = vectorBits;
    if (!llvm::is_contained({128, 256, 512}, vectorBits)) {
      getOperation()->emitError("'kvcache-expand-ops' expects 'vector-bits' to "
                                "be 128, 256 or 512, got ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    target->mma = mma;
    if (mma != HostMma::FMA && vectorBits != 512) {
      getOperation()->emitError("'kvcache-expand-ops' expects 'vector-bits' to "
                                "be 512 with matrix instructions, got ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    if (!forGPU && failed(joinAllSplits()))
      return signalPassFailure();
    bool changed = false;
    WalkResult result = getOperation()->walk([&](Operation *op) {
      return TypeSwitch<Operation *, WalkResult>(op)
          .Case<AppendOp, AttentionOp, GatherOp, CopyOp, CopyPagesOp,
                MergeSplitsOp, MergeStatesOp, RemapRowsOp, WorkspaceSizeOp>(
              [&](auto known) {
                changed = true;
                return expandOne(known);
              })
          .Default(WalkResult::advance());
    });
    if (result.wasInterrupted())
      signalPassFailure();
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  LogicalResult joinAllSplits() {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (op.getPartial())
        ops.push_back(op);
    });
    return success(llvm::all_of(
        ops, [](AttentionOp op) { return succeeded(joinSplits(op)); }));
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
    if constexpr (std::is_same_v<OpTy, AttentionOp>)
      if (forGPU &&
          (failed(planTiles(op, *target)) || failed(verifySplitsAreLeft(op))))
        return WalkResult::interrupt();
    OpBuilder builder(op);
    Frame frame(builder, op, forGPU, checks, *target);
    for (DenseOperand operand : getVectorOperands(op))
      frame.checkAlignment(operand.name, operand.value);
    expand(op, frame);
    op.erase();
    ++numExpanded;
    return WalkResult::skip();
  }

  std::optional<Target> target;
};

} // namespace
