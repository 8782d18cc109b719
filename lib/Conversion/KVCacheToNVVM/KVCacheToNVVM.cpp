//===- KVCacheToNVVM.cpp - Lower tensor copies to NVVM --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/KVCacheToNVVM.h"

#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/Target/Chip.h"

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

/// Whether the op is a TMA instruction, which only some chips have.
bool isTensorCopy(Operation *op) {
  return isa<TMAPrefetchOp, TMAExpectOp, TMALoadOp, TMALoadRowsOp, TMAGather4Op,
             TMAGatherTileOp, TMAStoreOp>(op);
}

struct ConvertKVCacheToNVVM
    : kvcache::impl::ConvertKVCacheToNVVMBase<ConvertKVCacheToNVVM> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      return isTensorCopy(op) && failed(checkTensorCopy(op))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();

    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    addTensorCopyLegality(target);
    RewritePatternSet patterns(&getContext());
    populateKVCacheToNVVMPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void kvcache::addTensorCopyLegality(ConversionTarget &target) {
  target.addIllegalOp<TMAPrefetchOp, TMAExpectOp, TMALoadOp, TMALoadRowsOp,
                      TMAGather4Op, TMAGatherTileOp, TMAStoreOp>();
  // Lower only waits for stores.
  target.addDynamicallyLegalOp<WaitOp>(
      [](WaitOp op) { return !op.getToken().getDefiningOp<TMAStoreOp>(); });
}

LogicalResult kvcache::checkTensorCopy(Operation *op) {
  if (!isInGPUCode(op))
    return op->emitOpError("expects GPU code");
  const Chip *chip = getTargetChip(op);
  if (!chip)
    return op->emitOpError("expects a gpu.module with one target");
  if (!chip->has(Feature::TMA))
    return op->emitOpError(getMissingFeatureMessage(*chip, Feature::TMA));
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
