//===- ClusterPatterns.cpp - Shared memory of clusters --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlir::kvcache;

/// The number of blocks that the first barrier of a kernel states, or 0.
static int64_t findBlocks(gpu::GPUFuncOp kernel) {
  int64_t blocks = 0;
  kernel.walk([&](ClusterBarrierOp barrier) {
    blocks = static_cast<int64_t>(barrier.getBlocks());
    return WalkResult::interrupt();
  });
  return blocks;
}

int64_t kvcache::countClusterBlocks(Operation *op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  int64_t blocks = kernel ? findBlocks(kernel) : 0;
  return blocks ? blocks : countBlocksOfCluster(op);
}

LogicalResult kvcache::checkCluster(Operation *op) {
  if (failed(checkFeature(op, Feature::Clusters)))
    return failure();
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (!kernel)
    return op->emitOpError("expects to be in a kernel");
  int64_t blocks = findBlocks(kernel), known = countBlocksOfCluster(op);
  auto barrier = dyn_cast<ClusterBarrierOp>(op);
  if (!barrier)
    // (C3) of `cluster_load`; a barrier may be lowered already.
    return blocks || known > 1
               ? success()
               : op->emitOpError("expects a 'cluster_barrier' in its kernel");
  // (C3)
  if (static_cast<int64_t>(barrier.getBlocks()) != blocks)
    return op->emitOpError(
               "expects 'blocks' of the first barrier of its kernel (")
           << blocks << "), got " << barrier.getBlocks();
  if (kernel.getKnownClusterSize() && known != blocks)
    return op->emitOpError("expects 'blocks' of the clusters that its kernel "
                           "states (")
           << known << "), got " << blocks;
  return success();
}

namespace {

struct LowerClusterBarrier : OpConversionPattern<ClusterBarrierOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClusterBarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkCluster(op)))
      return failure();
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    if (!kernel.getKnownClusterSize())
      rewriter.modifyOpInPlace(kernel, [&] {
        kernel.setKnownClusterSizeAttr(rewriter.getDenseI32ArrayAttr(
            {1, static_cast<int32_t>(op.getBlocks()), 1}));
      });
    UnitAttr aligned = rewriter.getUnitAttr();
    NVVM::ClusterArriveOp::create(rewriter, op.getLoc(), aligned);
    NVVM::ClusterWaitOp::create(rewriter, op.getLoc(), aligned);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerClusterLoad : OpConversionPattern<ClusterLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClusterLoadOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(checkCluster(op)))
      return failure();
    Location loc = op.getLoc();
    Value offset = TileOffsetOp::create(rewriter, loc, op.getTile(),
                                        op.getRow(), op.getColumn());
    Value own = getTileAddress(rewriter, loc, op.getTile(), offset);
    auto pointer = LLVM::LLVMPointerType::get(
        rewriter.getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    Value rank = IndexBuilder(rewriter, loc).toI32(op.getRank());
    Value other = NVVM::MapaOp::create(rewriter, loc, pointer, own, rank);
    // LLVM does not have all element types.
    Type lane = getLaneType(op.getType());
    int64_t lanes = getNumLanes(op.getType());
    int64_t bytes = lanes * lane.getIntOrFloatBitWidth() / 8;
    Value loaded = LLVM::LoadOp::create(
        rewriter, loc, VectorType::get(bytes, rewriter.getI8Type()), other,
        static_cast<unsigned>(bytes));
    Value result = rewriter.createOrFold<vector::BitCastOp>(
        loc, VectorType::get(lanes, lane), loaded);
    if (!isa<VectorType>(op.getType()))
      result = vector::ExtractOp::create(rewriter, loc, result, 0);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void kvcache::populateClusterPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerClusterBarrier, LowerClusterLoad>(patterns.getContext());
}
