//===- KVCacheToNVVM.cpp - Lower instructions of new chips to NVVM --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/DiagnosticHints.h"
#include "kvcache/Support/Pointers.h"
#include "kvcache/Support/Threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CONVERTKVCACHETONVVM
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Checks the target chip of an op that only some chips have.
LogicalResult check(Operation *op) {
  if (isa<TMAPrefetchOp, TMAExpectOp, TMALoadOp, TMALoadRowsOp, TMAGather4Op,
          TMAGatherTileOp, TMAStoreOp>(op))
    return checkTensorCopy(op);
  if (isa<MmaOp, MmaWaitOp>(op))
    return checkMatrixProduct(op);
  if (isa<ClusterBarrierOp, ClusterLoadOp>(op))
    return checkCluster(op);
  return isa<TmemAllocOp, TmemMmaOp, TmemCommitOp, TmemLoadOp, TmemStoreOp,
             TmemViewOp>(op)
             ? checkTensorMemory(op)
             : success();
}

struct ConvertKVCacheToNVVM
    : kvcache::impl::ConvertKVCacheToNVVMBase<ConvertKVCacheToNVVM> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk(
        [](Operation *op) { return WalkResult(check(op)); });
    if (result.wasInterrupted())
      return signalPassFailure();

    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    addKVCacheToNVVMLegality(target);
    RewritePatternSet patterns(&getContext());
    populateKVCacheToNVVMPatterns(patterns);
    DiagnosticHints hints(&getContext());
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void kvcache::populateKVCacheToNVVMPatterns(RewritePatternSet &patterns,
                                            bool mayLoop) {
  populateTensorCopyPatterns(patterns, mayLoop);
  populateMatrixPatterns(patterns);
  populateClusterPatterns(patterns);
  populateTensorMemoryPatterns(patterns, /*mayBranch=*/mayLoop);
}

void kvcache::addKVCacheToNVVMLegality(ConversionTarget &target) {
  target
      .addIllegalOp<TMAPrefetchOp, TMAExpectOp, TMALoadOp, TMALoadRowsOp,
                    TMAGather4Op, TMAGatherTileOp, TMAStoreOp, MmaOp, MmaWaitOp,
                    ClusterBarrierOp, ClusterLoadOp, TmemAllocOp, TmemMmaOp,
                    TmemCommitOp, TmemLoadOp, TmemStoreOp, TmemViewOp>();
  // Lower only waits for stores.
  target.addDynamicallyLegalOp<WaitOp>(
      [](WaitOp op) { return !op.getToken().getDefiningOp<TMAStoreOp>(); });
}

Value kvcache::getTileAddress(OpBuilder &builder, Location loc, Value tile,
                              Value offset) {
  auto cast = tile.getDefiningOp<UnrealizedConversionCastOp>();
  Value memory =
      cast ? cast.getOperand(0)
           : TileMemoryOp::create(
                 builder, loc,
                 llvm::cast<TileType>(tile.getType()).getMemoryType(), tile);
  return getSharedPointer(builder, loc, memory, offset);
}

//===----------------------------------------------------------------------===//
// Chips
//===----------------------------------------------------------------------===//

LogicalResult kvcache::checkFeature(Operation *op, Feature feature) {
  if (!isInGPUCode(op))
    return op->emitOpError("expects GPU code");
  const Chip *chip = getTargetChip(op);
  if (!chip)
    return op->emitOpError("expects a gpu.module with one target");
  if (!chip->has(feature))
    return op->emitOpError(getMissingFeatureMessage(*chip, feature));
  return success();
}

LogicalResult kvcache::checkTensorCopy(Operation *op) {
  if (failed(checkFeature(op, Feature::TMA)))
    return failure();
  if (auto load = dyn_cast<TMALoadOp>(op);
      load && load.getMulticast() && countBlocksOfCluster(op) == 1)
    return op->emitOpError("with 'multicast' requires a kernel that states "
                           "clusters of several blocks "
                           "('known_cluster_size')"); // (C5)
  const Chip *chip = getTargetChip(op);
  auto gather = dyn_cast<TMAGather4Op>(op);
  auto gatherTile = dyn_cast<TMAGatherTileOp>(op);
  if (chip->has(Feature::Gather4) || (!gather && !gatherTile))
    return success();
  // PTX ISA, "cp.async.bulk.tensor": the alignment of a destination, which is a
  // row for copies of single rows.
  constexpr int64_t alignment = 128;
  TMATileType descriptor = gather ? gather.getDescriptor().getType()
                                  : gatherTile.getDescriptor().getType();
  if (descriptor.getInnerBytes() % alignment == 0)
    return success();
  return op->emitOpError(getMissingFeatureMessage(*chip, Feature::Gather4))
         << ", where copies of single rows need a multiple of " << alignment
         << " bytes, got " << descriptor.getInnerBytes();
}
