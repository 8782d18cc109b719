//===- TileLoop.cpp - Loops over tiles of keys and values -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Whether an op stores into the tile of a region and synchronizes all that
/// multiply it. They do so in every iteration, in any order of products.
static bool preparesTile(Operation *op, Value tile) {
  if (op->getNumResults())
    return false;
  WalkResult result = op->walk([&](Operation *nested) -> WalkResult {
    if (auto store = dyn_cast<TileStoreOp>(nested))
      return WalkResult(success(store.getTile() == tile));
    if (auto barrier = dyn_cast<NVVM::BarrierOp>(nested))
      return WalkResult(
          success(barrier.getBarrierId() && barrier.getNumberOfThreads() &&
                  getConstantIntValue(barrier.getBarrierId()).value_or(0) &&
                  getConstantIntValue(barrier.getNumberOfThreads())));
    return WalkResult(
        success(isa<NVVM::FenceProxyOp, scf::ForOp, scf::IfOp>(nested) ||
                isPure(nested)));
  });
  return !result.wasInterrupted();
}

FailureOr<TileProduct> TileProduct::match(ConsumeOp consume,
                                          std::string &reason) {
  TileProduct found{consume, {}, {}};
  Value tile = consume.getBody().getArgument(0);
  for (Operation &op : consume.getBody().front()) {
    if (auto product = dyn_cast<FragmentMmaOp>(op)) {
      if (found.product)
        return refuse(reason, "a tile has several products");
      found.product = product;
    } else if (auto wait = dyn_cast<FragmentWaitOp>(op)) {
      found.wait = wait;
    } else if (!isa<YieldOp>(op) && !isPure(&op) &&
               (found.product || !preparesTile(&op, tile))) {
      return refuse(reason, "a tile has other uses than its product");
    }
  }
  Operation *yield = consume.getBody().front().getTerminator();
  bool isPlain =
      found.product && found.wait && found.wait.getPending() == 0 &&
      llvm::equal(found.wait.getProducts(), ArrayRef<Value>(found.product)) &&
      found.product->hasOneUse() &&
      llvm::equal(yield->getOperands(), found.wait.getResults());
  if (!isPlain)
    return refuse(reason,
                  "a tile's region is no product, its wait and its yield");
  return found;
}

LogicalResult TileLoop::findProducts(std::string &reason) {
  for (auto consume : getBody().getOps<ConsumeOp>()) {
    FailureOr<TileProduct> found = TileProduct::match(consume, reason);
    if (failed(found))
      return failure();
    TileProduct &product = found->product.getAccumulator() ? pv : qk;
    if (product.consume)
      return refuse(reason, "there are more than two products");
    product = *found;
    if (consume.getIndex() != loop.getInductionVar())
      return refuse(reason, "the index of a pipe is not that of the loop");
  }
  if (!qk.consume || !pv.consume)
    return refuse(reason, "there are no products QK and PV");
  if (qk.consume.getPipe() == pv.consume.getPipe())
    return refuse(reason, "keys and values have one pipe");
  return success();
}

/// Only PV, and what scales its accumulator, may use the carried one.
LogicalResult TileLoop::findScaling(std::string &reason) {
  Operation *yield = getBody().getTerminator();
  Value result = pv.consume.getResult(0);
  auto yielded = llvm::find(yield->getOperands(), result);
  if (yielded == yield->operand_end() || !result.hasOneUse())
    return refuse(reason, "PV is not carried to the next tile");
  accumulator = yielded.getIndex();
  if (pv.product.getAccumulator().getParentBlock() == &pv.getBody())
    return refuse(reason, "the region of PV makes its accumulator");
  ForwardSliceOptions options;
  options.filter = [&](Operation *op) {
    return op != pv.consume && op->getBlock() == &getBody() && op != yield;
  };
  getForwardSlice(getAccumulator(), &scaling, options);
  SmallVector<Value> values{getAccumulator()};
  bool isUsed = false;
  for (Operation *op : scaling) {
    llvm::append_range(values, op->getResults());
    isUsed |= !isPure(op);
  }
  auto own = pv.product.getAccumulatorMutable();
  for (Value value : values)
    for (OpOperand &use : value.getUses())
      isUsed |= !scaling.contains(use.getOwner()) && &use != own.begin();
  if (isUsed)
    return refuse(reason, "something else than PV uses the accumulator");
  return success();
}

static Value getMemory(Value tile) {
  while (auto view = tile.getDefiningOp<ViewLikeOpInterface>())
    tile = view.getViewSource();
  return tile;
}

/// Whether an op writes a tile from outside of the loop that a product reads.
/// The schedule computes the next tile's values before a product ends.
bool TileLoop::writesProductTile(Operation *op) {
  auto memory = dyn_cast<MemoryEffectOpInterface>(op);
  if (!memory)
    return false;
  SmallVector<MemoryEffects::EffectInstance> effects;
  memory.getEffects(effects);
  return llvm::any_of(effects, [&](const auto &effect) {
    Value value = effect.getValue();
    if (!value || !isa<MemoryEffects::Write>(effect.getEffect()))
      return false;
    Value written = getMemory(value);
    auto isWritten = [&](Value operand) {
      return getMemory(operand) == written;
    };
    return loop.isDefinedOutsideOfLoop(written) &&
           (llvm::any_of(qk.product->getOperands(), isWritten) ||
            llvm::any_of(pv.product->getOperands(), isWritten));
  });
}

/// Whether the threads of the block wait for each other in an op.
static bool exchangesBetweenWarps(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && reduce.getScratch();
}

LogicalResult TileLoop::checkBody(std::string &reason) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                         step = getConstantIntValue(loop.getStep());
  if (first != 0 || step != 1)
    return refuse(reason, "the loop is not from 0 by steps of 1");
  for (ConsumeOp consume : {qk.consume, pv.consume})
    if (consume.getPipe().getType().getStages() < 2)
      return refuse(reason, "a pipe has one stage");
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    bool isObstacle =
        isa<ProduceOp, gpu::BarrierOp, NVVM::Barrier0Op>(op) ||
        exchangesBetweenWarps(op) ||
        (isa<NVVM::BarrierOp>(op) && !op->getParentOfType<ConsumeOp>());
    if (isObstacle)
      reason = ("the loop has '" + op->getName().getStringRef() + "'").str();
    else if (writesProductTile(op))
      reason = ("'" + op->getName().getStringRef() +
                "' writes a tile that a product reads")
                   .str();
    else
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

void TileLoop::findTaken() {
  for (Operation &op : getBody().without_terminator())
    if (&op != pv.consume && !scaling.contains(&op))
      others.push_back(&op);
  SetVector<Value> used;
  getUsedValuesDefinedAbove(pv.consume.getBody(), used);
  used.remove(loop.getInductionVar());
  used.remove(getAccumulator());
  for (Value value : used)
    if (value.getParentBlock() == &getBody() &&
        !scaling.contains(value.getDefiningOp()))
      taken.insert(value);
}

/// Whether no element of a fragment is negative, if those of `known` are not.
static bool isNotNegative(Value value, Value known) {
  if (value == known)
    return true;
  Operation *op = value.getDefiningOp();
  if (auto splat = dyn_cast_if_present<SplatOp>(op)) {
    FloatAttr number;
    return matchPattern(splat.getValue(), m_Constant(&number)) &&
           !number.getValue().isNegative() && !number.getValue().isNaN();
  }
  if (auto reduce = dyn_cast_if_present<ReduceOp>(op))
    return reduce.getKind() == Reduction::AddF &&
           isNotNegative(reduce.getSource(), known) &&
           (!reduce.getInit() || isNotNegative(reduce.getInit(), known));
  auto map = dyn_cast_if_present<MapOp>(op);
  if (!map)
    return false;
  Operation *last =
      map.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  if (isa_and_present<math::Exp2Op, math::ExpOp>(last))
    return true;
  return isa_and_present<arith::MulFOp>(last) &&
         llvm::all_of(last->getOperands(), [&](Value factor) {
           auto argument = dyn_cast<BlockArgument>(factor);
           return argument &&
                  argument.getArgNumber() < map.getFragments().size() &&
                  isNotNegative(map.getFragments()[argument.getArgNumber()],
                                known);
         });
}

/// Finds a share of the sum of exponentials: the loop carries it, and it is not
/// negative.
void TileLoop::findRowSum() {
  for (auto [number, value] :
       llvm::enumerate(getBody().getTerminator()->getOperands())) {
    auto reduce = value.getDefiningOp<ReduceOp>();
    if (reduce && reduce.getType().getPartial() &&
        reduce.getType().getElementType().isF32() &&
        isNotNegative(loop.getInitArgs()[number], Value()) &&
        isNotNegative(value, loop.getRegionIterArgs()[number]))
      rowSum = value;
  }
}

/// Finds the tiles [from, to) for which a condition does not hold, if it
/// compares the number of the tile with values from outside of the loop.
static bool findBounds(Value condition, scf::ForOp loop, TileMask &mask) {
  if (auto either = condition.getDefiningOp<arith::OrIOp>())
    return findBounds(either.getLhs(), loop, mask) &&
           findBounds(either.getRhs(), loop, mask);
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getLhs() != loop.getInductionVar() ||
      !loop.isDefinedOutsideOfLoop(compare.getRhs()))
    return false;
  bool isLess = compare.getPredicate() == arith::CmpIPredicate::slt;
  if (!isLess && compare.getPredicate() != arith::CmpIPredicate::sge)
    return false;
  Value &bound = isLess ? mask.from : mask.to;
  if (bound)
    return false;
  bound = compare.getRhs();
  return true;
}

void TileLoop::findMasks() {
  for (Operation *op : others) {
    auto branch = dyn_cast<scf::IfOp>(op);
    TileMask mask{branch, {}, {}};
    if (branch && branch.elseBlock() &&
        findBounds(branch.getCondition(), loop, mask))
      masks.push_back(mask);
  }
}

FailureOr<TileLoop> TileLoop::match(scf::ForOp loop, std::string &reason) {
  TileLoop found{loop, {}, {}};
  if (failed(found.findProducts(reason)) || failed(found.findScaling(reason)) ||
      failed(found.checkBody(reason)))
    return failure();
  found.findTaken();
  found.findRowSum();
  found.findMasks();
  return found;
}
