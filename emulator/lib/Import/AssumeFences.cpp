//===- AssumeFences.cpp - Fences that chips do without --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Import/Passes.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_ASSUMEFENCES
#include "kvcache/Import/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// Whether threads order tensor memory by an op, with fences around it.
static bool isSynchronization(Operation *op) {
  return isa<NVVM::Barrier0Op, NVVM::BarrierOp, NVVM::BarrierArriveOp,
             NVVM::ClusterArriveOp, NVVM::ClusterWaitOp, NVVM::MBarrierArriveOp,
             NVVM::MBarrierArriveExpectTxOp, NVVM::MBarrierTestWaitOp,
             NVVM::MBarrierTryWaitOp, NVVM::MBarrierTryWaitParityOp>(op);
}

static bool usesTensorMemory(Operation *module) {
  return module
      ->walk([](NVVM::Tcgen05AllocOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static void addTensorFences(Operation *op) {
  using Kind = NVVM::Tcgen05FenceKind;
  OpBuilder builder(op);
  NVVM::Tcgen05FenceOp::create(builder, op->getLoc(), Kind::BEFORE_THREAD_SYNC);
  builder.setInsertionPointAfter(op);
  NVVM::Tcgen05FenceOp::create(builder, op->getLoc(), Kind::AFTER_THREAD_SYNC);
}

namespace {

struct AssumeFences : kvcache::impl::AssumeFencesBase<AssumeFences> {
  void runOnOperation() override {
    bool isTensor = usesTensorMemory(getOperation());
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<NVVM::MBarrierInitOp, NVVM::Tcgen05AllocOp>(op) ||
          (isTensor && isSynchronization(op)))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      addFences(op);
  }

private:
  static void addFences(Operation *op) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    if (isa<NVVM::MBarrierInitOp>(op))
      NVVM::FenceMbarrierInitOp::create(builder, op->getLoc());
    else if (isa<NVVM::Tcgen05AllocOp>(op))
      NVVM::FenceProxyOp::create(
          builder, op->getLoc(), NVVM::ProxyKind::async_shared,
          NVVM::SharedSpaceAttr::get(builder.getContext(),
                                     NVVM::SharedSpace::shared_cta));
    else
      addTensorFences(op);
  }
};

} // namespace
