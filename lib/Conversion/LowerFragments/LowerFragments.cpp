//===- LowerFragments.cpp - Lower fragments to registers ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../KVCacheToMemRef/ControlFlowPatterns.h"
#include "FragmentChecks.h"
#include "Registers.h"

#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/Support/DiagnosticHints.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERFRAGMENTS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Expands the results of a consumption.
struct ExpandConsume : OpConversionPattern<ConsumeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ConsumeOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto expanded = ExpandedResults::get(*typeConverter, op.getResultTypes());
    if (failed(expanded))
      return failure();
    auto made = ConsumeOp::create(rewriter, op.getLoc(), expanded->types,
                                  op.getPipe(), op.getIndex());
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getBody(), made.getBody(),
                                made.getBody().end());
    rewriter.replaceOpWithMultiple(op, expanded->split(made.getResults()));
    return success();
  }
};

struct ExpandYield : OpConversionPattern<YieldOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(YieldOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results;
    for (ValueRange each : adaptor.getResults())
      llvm::append_range(results, each);
    rewriter.replaceOpWithNewOp<YieldOp>(op, results);
    return success();
  }
};

struct LowerFragments : kvcache::impl::LowerFragmentsBase<LowerFragments> {
  void runOnOperation() override {
    if (!hasFragments())
      return markAllAnalysesPreserved();
    if (failed(checkFragments(getOperation())))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](Type type,
           SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          if (!isa<FragmentType, InFlightType>(type))
            return std::nullopt;
          for (Part part : cast<ExpandableTypeInterface>(type).getParts())
            types.push_back(part.type);
          return success();
        });
    RewritePatternSet patterns(context);
    ConversionTarget target(*context);
    populateMapPatterns(converter, patterns);
    populateElementPatterns(converter, patterns);
    populateTileAccessPatterns(converter, patterns);
    populateTensorMemoryPatterns(converter, patterns);
    populateRowPatterns(converter, patterns);
    populateSyncPatterns(converter, patterns);
    populateWgmmaPatterns(converter, patterns);
    patterns.add<ExpandConsume, ExpandYield>(converter, context);
    populateControlFlowPatterns(converter, patterns, target);
    target.addIllegalOp<FragmentLoadOp, FragmentMmaOp, FragmentStoreOp,
                        FragmentWaitOp, MapOp, OpaqueThreadOp, ReduceOp,
                        ScheduleFenceOp, SplatOp, StoreRowsOp, StoreSplitOp,
                        ToOperandOp, WarpAnyOp>();
    target.addDynamicallyLegalOp<TmemLoadOp, TmemStoreOp>(
        [](Operation *op) { return !usesFragments(op); });
    DiagnosticHints hints(context);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();
  }

private:
  bool hasFragments() {
    return getOperation()
        ->walk([](Operation *op) {
          return usesFragments(op) || isa<OpaqueThreadOp>(op)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }
};

} // namespace
