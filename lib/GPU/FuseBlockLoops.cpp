//===- FuseBlockLoops.cpp - Reductions over the threads of a block --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Combiners.h"
#include "kvcache/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_FUSEBLOCKLOOPS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The accesses of an op, with those of the ops inside it.
struct Effects {
  explicit Effects(Operation *op) {
    auto effects = getEffectsRecursively(op);
    isKnown = effects.has_value();
    if (!isKnown)
      return;
    for (const MemoryEffects::EffectInstance &effect : *effects) {
      reads |= isa<MemoryEffects::Read>(effect.getEffect());
      writes |=
          isa<MemoryEffects::Write, MemoryEffects::Free>(effect.getEffect());
      allocates |= isa<MemoryEffects::Allocate>(effect.getEffect());
    }
  }

  bool isKnown = false, reads = false, writes = false, allocates = false;
};

bool isEqualConstant(Value lhs, Value rhs) {
  APInt a, b;
  return matchPattern(lhs, m_ConstantInt(&a)) &&
         matchPattern(rhs, m_ConstantInt(&b)) && a == b;
}

/// Makes one loop over the threads of all loops of a block.
class BlockFuser {
public:
  explicit BlockFuser(scf::ParallelOp grid)
      : grid(grid), loops(grid.getBody()->getOps<scf::ParallelOp>()) {}

  LogicalResult run() {
    if (failed(check()))
      return failure();
    OpBuilder builder = OpBuilder::atBlockBegin(grid.getBody());
    auto copy = [&](Value bound) -> Value {
      APInt number;
      matchPattern(bound, m_ConstantInt(&number));
      return arith::ConstantIndexOp::create(builder, loops.front().getLoc(),
                                            number.getSExtValue());
    };
    auto lower = llvm::map_to_vector(loops.front().getLowerBound(), copy);
    auto upper = llvm::map_to_vector(loops.front().getUpperBound(), copy);
    auto step = llvm::map_to_vector(loops.front().getStep(), copy);
    SmallVector<Operation *> ops;
    Operation *first = step.back().getDefiningOp()->getNextNode();
    for (Operation *op = first; op != grid.getBody()->getTerminator();
         op = op->getNextNode())
      ops.push_back(op);
    block = scf::ParallelOp::create(builder, loops.front().getLoc(), lower,
                                    upper, step);
    for (Operation *op : ops) {
      if (auto loop = dyn_cast<scf::ParallelOp>(op))
        moveLoop(loop);
      else
        moveShared(op);
    }
    return success();
  }

private:
  LogicalResult check() {
    for (scf::ParallelOp loop : loops)
      if (failed(checkLoop(loop)))
        return failure();
    for (Operation &op : grid.getBody()->without_terminator())
      if (!isa<scf::ParallelOp, gpu::BarrierOp>(op) && failed(checkShared(op)))
        return failure();
    return success();
  }

  /// All loops have the same threads, whose number is known.
  LogicalResult checkLoop(scf::ParallelOp loop) {
    scf::ParallelOp other = loops.front();
    auto isSame = [](ValueRange lhs, ValueRange rhs) {
      return lhs.size() == rhs.size() &&
             llvm::all_of_zip(lhs, rhs, isEqualConstant);
    };
    if (!isSame(loop.getLowerBound(), other.getLowerBound()) ||
        !isSame(loop.getUpperBound(), other.getUpperBound()) ||
        !isSame(loop.getStep(), other.getStep()))
      return loop.emitOpError("expects the constant bounds and steps of all "
                              "loops over the threads of a block with a "
                              "reduction to be equal");
    for (auto [lower, upper] :
         llvm::zip(loop.getLowerBound(), loop.getUpperBound())) {
      APInt first, end;
      matchPattern(lower, m_ConstantInt(&first));
      matchPattern(upper, m_ConstantInt(&end));
      if (!first.slt(end))
        return loop.emitOpError("expects a thread in a block with a reduction, "
                                "got bounds ")
               << first.getSExtValue() << " and " << end.getSExtValue();
    }
    for (Value init : loop.getInitVals())
      if (!init.getType().isIndex() &&
          !(init.getType().isSignlessIntOrFloat() &&
            init.getType().getIntOrFloatBitWidth() <= 64))
        return loop.emitOpError("expects reductions of at most 64 bits, got ")
               << init.getType();
    Operation *terminator = loop.getBody()->getTerminator();
    for (Region &combiner : terminator->getRegions())
      if (failed(checkCombiner(combiner)))
        return failure();
    return success();
  }

  LogicalResult checkCombiner(Region &combiner) {
    WalkResult result = combiner.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!combiner.isAncestor(operand.getParentRegion()) &&
            !matchPattern(operand, m_Constant())) {
          op->emitOpError("expects a reduction to combine its arguments and "
                          "constants only");
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Each thread executes an op outside of the loops, or the first one does.
  LogicalResult checkShared(Operation &op) {
    Effects effects(&op);
    if (!effects.isKnown)
      return op.emitOpError("expects known memory effects beside a reduction "
                            "over threads");
    if (effects.writes && !op.use_empty())
      return op.emitOpError("expects no result beside a reduction over "
                            "threads: one thread executes it");
    for (Type type : op.getResultTypes())
      if (auto memref = dyn_cast<MemRefType>(type);
          memref && effects.allocates &&
          !gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(memref))
        return op.emitOpError("expects memory of a block with a reduction to "
                              "be shared, got ")
               << type;
    return success();
  }

  /// Synchronizes if accesses before and after this place may conflict.
  void separate(OpBuilder &builder, Location loc, const Effects &next) {
    if ((next.writes && (hasRead || hasWritten)) ||
        (next.reads && hasWritten)) {
      gpu::BarrierOp::create(builder, loc);
      hasRead = hasWritten = false;
    }
    hasRead |= next.reads;
    hasWritten |= next.writes;
  }

  void moveLoop(scf::ParallelOp loop) {
    OpBuilder builder = OpBuilder::atBlockTerminator(block.getBody());
    Effects all(loop);
    // Accesses of unknown ops count as both.
    if (!all.isKnown)
      all.reads = all.writes = true;
    separate(builder, loop.getLoc(), all);
    for (auto [inner, outer] :
         llvm::zip_equal(loop.getInductionVars(), block.getInductionVars()))
      inner.replaceAllUsesWith(outer);
    Block *body = loop.getBody();
    auto reduce = cast<scf::ReduceOp>(body->getTerminator());
    block.getBody()->getOperations().splice(
        block.getBody()->getTerminator()->getIterator(), body->getOperations(),
        body->begin(), reduce->getIterator());
    for (auto [result, init, value, combiner] :
         llvm::zip_equal(loop.getResults(), loop.getInitVals(),
                         reduce.getOperands(), reduce.getReductions())) {
      Value all =
          reduceThreads(builder, loop.getLoc(), value, combiner.front());
      result.replaceAllUsesWith(
          inlineCombiner(builder, combiner.front(), init, all));
    }
    loop.erase();
  }

  /// Combines a value of each thread. An index is an i64 meanwhile.
  Value reduceThreads(OpBuilder &builder, Location loc, Value value,
                      Block &combiner) {
    Type type = value.getType();
    Type i64 = builder.getI64Type();
    auto cast = [&](OpBuilder &b, Type to, Value from) -> Value {
      return from.getType() == to
                 ? from
                 : arith::IndexCastOp::create(b, loc, to, from).getResult();
    };
    Value number = type.isIndex() ? cast(builder, i64, value) : value;
    auto reduction = gpu::AllReduceOp::create(
        builder, loc, number, gpu::AllReduceOperationAttr(), /*uniform=*/true);
    OpBuilder inside(builder.getContext());
    Block *body =
        inside.createBlock(&reduction.getBody(), {},
                           {number.getType(), number.getType()}, {loc, loc});
    Value lhs = cast(inside, type, body->getArgument(0));
    Value rhs = cast(inside, type, body->getArgument(1));
    Value combined = inlineCombiner(inside, combiner, lhs, rhs);
    gpu::YieldOp::create(inside, loc, cast(inside, number.getType(), combined));
    isolate(reduction.getBody());
    return cast(builder, type, reduction.getResult());
  }

  /// Copies constants from outside into a region.
  static void isolate(Region &region) {
    region.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        if (region.isAncestor(operand.get().getParentRegion()))
          continue;
        OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
        Operation *constant = builder.clone(*operand.get().getDefiningOp());
        operand.set(constant->getResult(0));
      }
    });
  }

  /// Lets all threads execute an op, or the first one if it writes memory.
  void moveShared(Operation *op) {
    if (isa<gpu::BarrierOp>(op)) {
      op->moveBefore(block.getBody()->getTerminator());
      hasRead = hasWritten = false;
      return;
    }
    OpBuilder builder = OpBuilder::atBlockTerminator(block.getBody());
    Effects effects(op);
    separate(builder, op->getLoc(), effects);
    if (!effects.writes) {
      op->moveBefore(block.getBody()->getTerminator());
      return;
    }
    auto guard = scf::IfOp::create(builder, op->getLoc(), getIsFirst());
    op->moveBefore(guard.thenYield());
  }

  Value getIsFirst() {
    if (isFirst)
      return isFirst;
    OpBuilder builder = OpBuilder::atBlockBegin(block.getBody());
    for (auto [number, lower] :
         llvm::zip_equal(block.getInductionVars(), block.getLowerBound())) {
      Value isLower = arith::CmpIOp::create(
          builder, block.getLoc(), arith::CmpIPredicate::eq, number, lower);
      isFirst = isFirst ? arith::AndIOp::create(builder, block.getLoc(),
                                                isFirst, isLower)
                              .getResult()
                        : isLower;
    }
    return isFirst;
  }

  scf::ParallelOp grid, block;
  SmallVector<scf::ParallelOp> loops;
  Value isFirst;
  bool hasRead = false, hasWritten = false;
};

struct FuseBlockLoops : kvcache::impl::FuseBlockLoopsBase<FuseBlockLoops> {
  void runOnOperation() override {
    SmallVector<scf::ParallelOp> grids;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::LaunchOp, gpu::GPUModuleOp>(op))
        return WalkResult::skip();
      auto loop = dyn_cast<scf::ParallelOp>(op);
      if (!loop)
        return WalkResult::advance();
      grids.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ParallelOp grid : grids)
      if (failed(fuse(grid)))
        return signalPassFailure();
  }

private:
  static LogicalResult fuse(scf::ParallelOp grid) {
    auto loops = grid.getBody()->getOps<scf::ParallelOp>();
    if (grid.getNumResults() != 0)
      return grid.emitOpError("expects no 'init' on the loop over thread "
                              "blocks: a reduction over a grid needs a second "
                              "kernel");
    bool reduces = llvm::any_of(
        loops, [](scf::ParallelOp loop) { return loop.getNumResults() != 0; });
    return reduces ? BlockFuser(grid).run() : success();
  }
};

} // namespace
