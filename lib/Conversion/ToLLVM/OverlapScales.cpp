//===- OverlapScales.cpp - Compute scales one iteration early -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/EarlyValues.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_OVERLAPSCALES
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

/// The ops of the body of a loop that an earlier iteration runs.
using EarlyOps = SetVector<Operation *>;

/// Whether an op does more than to read memory.
static bool mayWrite(Operation *op) {
  if (isa<memref::PrefetchOp>(op))
    return false;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [](const auto &effect) {
    return !isa<MemoryEffects::Read>(effect.getEffect());
  });
}

/// The ops of a loop's body on which its early values depend, or nothing if
/// something that may write, or stop the program, is not after all of them.
static std::optional<EarlyOps> findEarlyOps(scf::ForOp loop) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) {
    return op->getBlock() == loop.getBody();
  };
  EarlyOps early;
  for (Operation &op : *loop.getBody())
    if (isEarly(&op) && failed(getBackwardSlice(&op, &early, options)))
      return std::nullopt;
  bool isWritten = false;
  for (Operation &op : *loop.getBody()) {
    isWritten |= mayWrite(&op);
    if (isWritten && early.contains(&op))
      return std::nullopt;
  }
  return early;
}

/// Copies an early load, with ops that move its elements, for the iteration
/// itself: to load again is cheaper than to keep registers.
static Value reload(OpBuilder &builder, Value value, const EarlyOps &early,
                    IRMapping &reloaded) {
  Operation *op = value.getDefiningOp();
  if (reloaded.contains(value))
    return reloaded.lookup(value);
  if (!op || !early.contains(op) ||
      !isa<vector::LoadOp, vector::ShuffleOp, vector::BitCastOp,
           vector::ExtractStridedSliceOp>(op))
    return value;
  for (Value operand : op->getOperands())
    if (isa<VectorType>(operand.getType()))
      reloaded.map(operand, reload(builder, operand, early, reloaded));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(op);
  builder.clone(*op, reloaded);
  return reloaded.lookup(value);
}

/// Lets ops that are not early have copies of early loads.
static void reloadRows(scf::ForOp loop, const EarlyOps &early) {
  OpBuilder builder(loop);
  IRMapping reloaded;
  SmallVector<Operation *> late;
  for (Operation &op : loop.getBody()->without_terminator())
    if (!early.contains(&op))
      late.push_back(&op);
  for (Operation *op : late)
    op->walk([&](Operation *nested) {
      for (OpOperand &operand : nested->getOpOperands())
        if (isa<VectorType>(operand.get().getType()))
          operand.set(reload(builder, operand.get(), early, reloaded));
    });
}

/// Whether bounds are constant, and there are several iterations.
static bool hasSeveralIterations(scf::ForOp loop) {
  bool areConstant = llvm::all_of(
      ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
      [](Value bound) { return getConstantIntValue(bound).has_value(); });
  std::optional<llvm::APInt> count = loop.getStaticTripCount();
  return areConstant && count && count->ugt(1);
}

static void overlap(scf::ForOp loop) {
  if (loop.getNumResults() || !hasSeveralIterations(loop))
    return;
  std::optional<EarlyOps> early = findEarlyOps(loop);
  if (!early)
    return;
  reloadRows(loop, *early);
  scf::PipeliningOption options;
  options.getScheduleFn =
      [&](scf::ForOp pipelined,
          std::vector<std::pair<Operation *, unsigned>> &ops) {
        for (bool isEarlyStage : {true, false})
          for (Operation &op : pipelined.getBody()->without_terminator())
            if (early->contains(&op) == isEarlyStage)
              ops.push_back({&op, isEarlyStage ? 0 : 1});
      };
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  DictionaryAttr attrs = loop->getDiscardableAttrDictionary();
  FailureOr<scf::ForOp> pipelined =
      scf::pipelineForLoop(rewriter, loop, options);
  if (succeeded(pipelined))
    (*pipelined)->setDiscardableAttrs(attrs);
}

namespace {

struct OverlapScales : kvcache::impl::OverlapScalesBase<OverlapScales> {
  void runOnOperation() override {
    // Inner loops come first, as their outer ones are replaced.
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (isIndependent(loop) &&
          llvm::any_of(*loop.getBody(),
                       [](Operation &op) { return isEarly(&op); }))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      overlap(loop);
    getOperation()->walk([](Operation *op) {
      op->removeDiscardableAttr(kEarlyAttr);
      op->removeDiscardableAttr(kIndependentAttr);
    });
    if (loops.empty())
      markAllAnalysesPreserved();
  }
};

} // namespace
