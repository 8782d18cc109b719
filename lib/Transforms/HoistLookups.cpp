//===- HoistLookups.cpp - Hoist table reads out of loops ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_HOISTLOOKUPS
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Whether this is a sequential loop with bounds that a guard can compare.
bool isCountedLoop(LoopLikeOpInterface loop) {
  auto forOp = dyn_cast<scf::ForOp>(*loop);
  return forOp && !forOp.getUnsignedCmp();
}

/// Returns the loop whose body directly contains `op`, so that every iteration
/// runs it.
LoopLikeOpInterface getLoopAround(Operation *op) {
  auto loop = dyn_cast_if_present<LoopLikeOpInterface>(op->getParentOp());
  return loop && isCountedLoop(loop) ? loop : LoopLikeOpInterface();
}

bool areDefinedOutside(LoopLikeOpInterface loop, ValueRange values) {
  return llvm::all_of(
      values, [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
}

/// Whether a loop contains an op that may stop the program. Ops that it
/// protects must not move before it.
bool holdsCheck(LoopLikeOpInterface loop) {
  return loop
      ->walk([](Operation *op) {
        return isa<CheckOp, cf::AssertOp>(op) ? WalkResult::interrupt()
                                              : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A nest of loops on which a value does not depend, outermost last.
using Nest = SmallVector<LoopLikeOpInterface>;

/// The reason why a lookup of `operands` can't move from `nest` out of the loop
/// around it, or nothing if it can.
std::optional<StringRef> findObstacle(LoopLikeOpInterface loop,
                                      ValueRange operands, const Nest &nest) {
  if (!areDefinedOutside(loop, operands))
    return "its indices change in the loop";
  if (holdsCheck(loop))
    return "the loop holds a check";
  for (LoopLikeOpInterface inner : nest)
    if (!areDefinedOutside(loop, inner->getOperands()))
      return "the bounds of an inner loop change in the loop";
  return std::nullopt;
}

/// Returns the loops around `op`, innermost first, in which `operands` are
/// invariant, and whose bounds are known before the outermost loop.
Nest getInvariantNest(Operation *op, ValueRange operands) {
  Nest nest;
  while (LoopLikeOpInterface loop = getLoopAround(op)) {
    if (findObstacle(loop, operands, nest))
      break;
    nest.push_back(loop);
    op = loop;
  }
  return nest;
}

remark::RemarkOpts getRemarkOptions() {
  return remark::RemarkOpts::name("lookup").category("kvcache-hoist-lookups");
}

/// Says why the lookup of `operands` stays in the loop around `op`, if there is
/// one.
void remarkMissed(Operation *op, ValueRange operands) {
  if (LoopLikeOpInterface loop = getLoopAround(op))
    remark::missed(op->getLoc(), getRemarkOptions())
        << "lookup stays in its loop"
        << remark::reason("{0}", *findObstacle(loop, operands, {}));
}

/// Whether the loop runs at least once, if its bounds are constant.
std::optional<bool> runsStatically(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  if (lower && upper)
    return *lower < *upper;
  return std::nullopt;
}

/// Builds the condition that all loops of the nest run, or returns null if they
/// provably run.
Value buildGuard(OpBuilder &builder, Location loc, const Nest &nest) {
  Value guard;
  for (LoopLikeOpInterface loop : nest) {
    auto forOp = cast<scf::ForOp>(*loop);
    if (runsStatically(forOp).value_or(false))
      continue;
    Value runs =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                              forOp.getLowerBound(), forOp.getUpperBound());
    guard = guard ? arith::AndIOp::create(builder, loc, guard, runs).getResult()
                  : runs;
  }
  return guard;
}

/// Moves `op` before the nest. Adds a guard if the nest may not run and the op
/// is not speculatable.
void hoist(Operation *op, const Nest &nest) {
  OpBuilder builder(nest.back());
  Location loc = op->getLoc();
  Value guard;
  if (!isSpeculatable(op))
    guard = buildGuard(builder, loc, nest);
  remark::passed(loc, getRemarkOptions())
      << "lookup moved out of its loops" << remark::metric("Loops", nest.size())
      << remark::metric("Guarded", static_cast<bool>(guard));
  if (!guard) {
    op->moveBefore(nest.back());
    return;
  }
  auto branch = scf::IfOp::create(builder, loc, op->getResultTypes(), guard,
                                  /*withElseRegion=*/true);
  op->replaceAllUsesWith(branch);
  builder.setInsertionPointToStart(branch.thenBlock());
  op->moveBefore(branch.thenBlock(), branch.thenBlock()->begin());
  builder.setInsertionPointAfter(op);
  scf::YieldOp::create(builder, loc, op->getResults());
  builder.setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> poison;
  for (Type type : op->getResultTypes())
    poison.push_back(ub::PoisonOp::create(builder, loc, type));
  scf::YieldOp::create(builder, loc, poison);
}

/// Whether the op is only a lookup, without memory effects, so that it can
/// move.
bool isLookup(Operation *op) {
  return isa<AccessOpInterface>(op) && isMemoryEffectFree(op);
}

struct HoistLookups : kvcache::impl::HoistLookupsBase<HoistLookups> {
  void runOnOperation() override {
    SmallVector<AccessOpInterface> accesses;
    getOperation()->walk(
        [&](AccessOpInterface access) { accesses.push_back(access); });
    bool changed = false;
    for (AccessOpInterface access : accesses)
      if (hoistLookupOf(access)) {
        ++numHoisted;
        changed = true;
      }
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  static bool hoistLookupOf(AccessOpInterface access) {
    if (isLookup(access)) {
      Nest nest = getInvariantNest(access, access->getOperands());
      if (!nest.empty()) {
        hoist(access, nest);
        return true;
      }
    }
    bool hoistedElements = splitAndHoist(access, access.getPageOperand(),
                                         /*isScales=*/false);
    bool hoistedScales = splitAndHoist(access, access.getScalePageOperand(),
                                       /*isScales=*/true);
    return hoistedElements || hoistedScales;
  }

  /// Looks the page of an access, or of its scales, up before the loops in
  /// which its sequence and token are invariant.
  static bool splitAndHoist(AccessOpInterface access,
                            std::optional<MutableOperandRange> page,
                            bool isScales) {
    if (!page || !page->empty())
      return false;
    Value cache = access.getAccessedCache();
    Value batch = access.getAccessedBatch(), token = access.getAccessedToken();
    Nest nest = getInvariantNest(access, {cache, batch, token});
    if (nest.empty()) {
      remarkMissed(access, {cache, batch, token});
      return false;
    }
    OpBuilder builder(access);
    Location loc = access.getLoc();
    if (isScales && !isa<ScalesType>(cache.getType())) {
      auto view = ScalesViewOp::create(builder, loc, cache);
      hoist(view, nest);
      cache = view;
    }
    auto lookup = PageIdOp::create(builder, loc, builder.getIndexType(), cache,
                                   batch, token);
    page->assign(lookup.getPage());
    hoist(lookup, nest);
    return true;
  }
};

} // namespace
