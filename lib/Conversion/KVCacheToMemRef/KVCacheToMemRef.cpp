//===- KVCacheToMemRef.cpp - Lower kvcache to memref ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/KVCacheToMemRef.h"
#include "kvcache/IR/CacheShape.h"

#include "Bundle.h"
#include "ControlFlowPatterns.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMapOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/Support/DiagnosticHints.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_CONVERTKVCACHETOMEMREF
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

void kvcache::populateKVCacheTypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](ExpandableTypeInterface type, SmallVectorImpl<Type> &types) {
        for (Part part : type.getParts())
          types.push_back(part.type);
        return success();
      });
}

void kvcache::populateKVCacheToMemRefPatterns(const TypeConverter &converter,
                                              RewritePatternSet &patterns) {
  populateViewPatterns(converter, patterns);
  populateQueryPatterns(converter, patterns);
  populateAccessPatterns(converter, patterns);
  populateScalesPatterns(converter, patterns);
  populatePartPatterns(converter, patterns);
  populateQuantizationPatterns(converter, patterns);
  populateTensorMapPatterns(converter, patterns);
  populateTilePatterns(converter, patterns);
  populatePageTablePatterns(converter, patterns);
}

LogicalResult kvcache::checkFragmentsAreLowered(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    auto isFragment = llvm::IsaPred<FragmentType, InFlightType>;
    if (llvm::none_of(op->getOperandTypes(), isFragment) &&
        llvm::none_of(op->getResultTypes(), isFragment))
      return WalkResult::advance();
    op->emitOpError(isInGPUCode(op)
                        ? "expects 'kvcache-lower-fragments' to lower it first"
                        : "with fragments expects GPU code");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct ConvertKVCacheToMemRef
    : kvcache::impl::ConvertKVCacheToMemRefBase<ConvertKVCacheToMemRef> {
  void runOnOperation() override {
    if (failed(checkLanes()) || failed(checkElements()) ||
        failed(checkCopies()) ||
        failed(checkFragmentsAreLowered(getOperation())))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    TypeConverter converter;
    populateKVCacheTypeConversions(converter);
    // Tensor copies and products keep their tiles and rows.
    converter.addSourceMaterialization([](OpBuilder &builder, Type type,
                                          ValueRange parts,
                                          Location loc) -> Value {
      if (!isa<TileType, TmemTileType, RowIndicesType>(type))
        return {};
      return UnrealizedConversionCastOp::create(builder, loc, type, parts)
          .getResult(0);
    });

    // Allocations in tensor memory keep them too, and calls take addresses.
    converter.addTargetMaterialization([](OpBuilder &builder, Type type,
                                          ValueRange tiles,
                                          Location loc) -> Value {
      if (tiles.size() != 1 || !isa<TmemTileType>(tiles[0].getType()))
        return {};
      return UnrealizedConversionCastOp::create(builder, loc, type, tiles)
          .getResult(0);
    });

    RewritePatternSet patterns(context);
    ConversionTarget target(*context);
    populateKVCacheToMemRefPatterns(converter, patterns);
    populateControlFlowPatterns(converter, patterns, target);
    target.addIllegalDialect<KVCacheDialect>();
    // What is left of the dialect has lowerings of its own.
    target.addLegalOp<CheckOp, EncodeTensorMapOp, TMAPrefetchOp, TMAExpectOp,
                      TMALoadOp, TMALoadRowsOp, TMAGather4Op, TMAGatherTileOp,
                      TMAStoreOp, MmaOp, MmaWaitOp, TmemAllocOp, TmemMmaOp,
                      TmemCommitOp, TmemLoadOp, TmemStoreOp, TmemViewOp>();
    target.addDynamicallyLegalOp<WaitOp>(isForStore);
    DiagnosticHints hints(&getContext());
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }

private:
  static bool isForStore(WaitOp op) {
    return op.getToken().getDefiningOp<TMAStoreOp>() != nullptr;
  }

  LogicalResult checkCopies() {
    WalkResult result = getOperation()->walk([](Operation *op) {
      auto wait = dyn_cast<WaitOp>(op);
      if (!isa<TileCopyOpInterface, PipeOp>(op) && (!wait || isForStore(wait)))
        return WalkResult::advance();
      op->emitOpError("expects 'kvcache-expand-copies' to lower it first");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult checkElements() {
    WalkResult result = getOperation()->walk([](AccessOpInterface op) {
      auto store = dyn_cast<StoreQuantizedOp>(*op);
      if (store && failed(checkConstantToken(store)))
        return WalkResult::interrupt();
      return WalkResult(checkConstantElement(op));
    });
    return failure(result.wasInterrupted());
  }

  /// Only threads of a GPU have neighbours to share a group with.
  LogicalResult checkLanes() {
    WalkResult result = getOperation()->walk([](QuantizeOp op) {
      if (op.getLanes().value_or(1) == 1 || isInGPUCode(op))
        return WalkResult::advance();
      op.emitOpError("expects GPU code for a group over several lanes");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
