//===- LowerFragments.cpp - Lower fragments to registers ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../KVCacheToMemRef/ControlFlowPatterns.h"
#include "Registers.h"

#include "kvcache/Conversion/Passes.h"
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

bool isFragment(Type type) { return isa<FragmentType, InFlightType>(type); }

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
    if (failed(checkCode()))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](Type type,
           SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          if (!isFragment(type))
            return std::nullopt;
          for (Part part : cast<ExpandableTypeInterface>(type).getParts())
            types.push_back(part.type);
          return success();
        });
    RewritePatternSet patterns(context);
    ConversionTarget target(*context);
    populateElementPatterns(converter, patterns);
    populateTileAccessPatterns(converter, patterns);
    populateTensorMemoryPatterns(converter, patterns);
    populateRowPatterns(converter, patterns);
    populateSyncPatterns(converter, patterns);
    populateWgmmaPatterns(converter, patterns);
    patterns.add<ExpandConsume, ExpandYield>(converter, context);
    populateControlFlowPatterns(converter, patterns, target);
    target
        .addIllegalOp<FragmentLoadOp, FragmentMmaOp, FragmentStoreOp,
                      FragmentWaitOp, MapOp, ReduceOp, ScheduleFenceOp, SplatOp,
                      StoreRowsOp, StoreSplitOp, ToOperandOp, WarpAnyOp>();
    target.addDynamicallyLegalOp<TmemLoadOp, TmemStoreOp>(
        [](Operation *op) { return !has(op); });
    DiagnosticHints hints(context);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();
    lowerOpaqueThreads();
  }

private:
  /// Fragments have found their places.
  void lowerOpaqueThreads() {
    getOperation()->walk([](OpaqueThreadOp op) {
      OpBuilder builder(op);
      op.replaceAllUsesWith(makeOpaqueThread({builder, op.getLoc()}));
      op.erase();
    });
  }

  static bool has(Operation *op) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    return llvm::any_of(op->getOperandTypes(), isFragment) ||
           llvm::any_of(op->getResultTypes(), isFragment) ||
           (function &&
            (llvm::any_of(function.getArgumentTypes(), isFragment) ||
             llvm::any_of(function.getResultTypes(), isFragment)));
  }

  /// Whether an op may have a product in flight as an operand: it waits for it,
  /// adds to it, or passes it on.
  static bool mayTakeInFlight(Operation *op) {
    return isa<FragmentWaitOp, FragmentMmaOp, RegionBranchOpInterface,
               BranchOpInterface, CallOpInterface>(op) ||
           op->hasTrait<OpTrait::ReturnLike>() || isa<YieldOp>(op);
  }

  bool hasFragments() {
    return getOperation()
        ->walk([](Operation *op) {
          return has(op) || isa<OpaqueThreadOp>(op) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Only threads of a team have fragments, and only functions that are called
  /// take them.
  LogicalResult checkCode() {
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
      if (kernel && kernel.isKernel() &&
          llvm::any_of(kernel.getArgumentTypes(), isFragment))
        return op->emitOpError("expects no fragments as arguments of a kernel");
      if (isa<OpaqueThreadOp>(op) && !isInGPUCode(op))
        return op->emitOpError("expects GPU code");
      if (has(op) && !isInGPUCode(op))
        return op->emitOpError("with fragments expects GPU code");
      if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<InFlightType>) &&
          !mayTakeInFlight(op))
        return op->emitOpError("uses a product in flight, whose registers are "
                               "not ready before 'kvcache.fragment_wait'");
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
