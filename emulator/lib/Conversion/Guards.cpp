//===- Guards.cpp - What must not stop the host ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a chip, a division by zero gives some number, and a loop without end is
// the host's problem. Here they would end the process, or never.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Predicates.h"
#include "kvcache/Emulator/ABI.h"
#include "kvcache/Emulator/Control.h"

#include "mlir/IR/Matchers.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Divisions
//===----------------------------------------------------------------------===//

/// Whether no element of a constant is `value`.
static bool isNever(Value number, function_ref<bool(const APInt &)> isValue) {
  APInt scalar;
  if (matchPattern(number, m_ConstantInt(&scalar)))
    return !isValue(scalar);
  DenseIntElementsAttr elements;
  return matchPattern(number, m_Constant(&elements)) &&
         llvm::none_of(elements.getValues<APInt>(), isValue);
}

namespace {

/// The conditions under which a division has no result.
class DivisionGuard {
public:
  explicit DivisionGuard(Operation *op)
      : op(op), builder(op), type(op->getResult(0).getType()) {}

  /// Null if it never happens.
  Value divisorIsZero() {
    Value divisor = op->getOperand(1);
    if (isNever(divisor, [](const APInt &value) { return value.isZero(); }))
      return {};
    return any(equals(divisor, APInt::getZero(getWidth())));
  }

  /// Likewise.
  Value overflows() {
    Value divisor = op->getOperand(1);
    if (!isa<LLVM::SDivOp, LLVM::SRemOp>(op) ||
        isNever(divisor, [](const APInt &value) { return value.isAllOnes(); }))
      return {};
    Value isLeast =
        equals(op->getOperand(0), APInt::getSignedMinValue(getWidth()));
    Value isMinusOne = equals(divisor, APInt::getAllOnes(getWidth()));
    return any(LLVM::AndOp::create(builder, op->getLoc(), isLeast, isMinusOne));
  }

private:
  unsigned getWidth() const {
    return getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  }

  Value equals(Value number, const APInt &wanted) {
    Attribute value =
        builder.getIntegerAttr(getElementTypeOrSelf(type), wanted);
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    Value constant =
        LLVM::ConstantOp::create(builder, op->getLoc(), type, value);
    return LLVM::ICmpOp::create(builder, op->getLoc(), LLVM::ICmpPredicate::eq,
                                number, constant);
  }

  Value any(Value condition) {
    if (!isa<VectorType>(type))
      return condition;
    return LLVM::vector_reduce_or::create(builder, op->getLoc(),
                                          builder.getI1Type(), condition);
  }

  Operation *op;
  OpBuilder builder;
  Type type;
};

} // namespace

/// Calls a function that ends the launch where a condition is true before
/// an op.
static void failIf(Operation *op, EmulatorCalls &calls, Value condition,
                   uint32_t reason) {
  if (!condition)
    return;
  calls.call(op, "kvcacheEmulatorFail", Type(), calls.getI32(op, reason));
  branchOnPredicate(op->getPrevNode(), condition);
}

static void guardDivision(Operation *op, EmulatorCalls &calls) {
  DivisionGuard guard(op);
  failIf(op, calls, guard.divisorIsZero(), KVCacheDividesByZero);
  failIf(op, calls, DivisionGuard(op).overflows(), KVCacheDivisionOverflows);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The blocks of a function from which control goes back: one in each loop at
/// least.
static SmallVector<Block *> getBackEdges(Region &body) {
  struct Step {
    Block *block;
    unsigned next;
  };
  SmallVector<Block *> sources;
  llvm::SmallPtrSet<Block *, 16> seen, active;
  SmallVector<Step> path;
  auto enter = [&](Block *block) {
    seen.insert(block);
    active.insert(block);
    path.push_back({block, 0});
  };
  for (enter(&body.front()); !path.empty();) {
    Step &step = path.back();
    if (step.next == step.block->getNumSuccessors()) {
      active.erase(step.block);
      path.pop_back();
      continue;
    }
    Block *source = step.block;
    Block *successor = source->getSuccessor(step.next++);
    if (active.contains(successor) && !llvm::is_contained(sources, source))
      sources.push_back(source);
    if (!seen.contains(successor))
      enter(successor);
  }
  return sources;
}

/// Whether the thread has gone back in loops as often as `KVCacheManyLoops`
/// once more.
static Value countLoops(Operation *op, EmulatorCalls &calls) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  constexpr int32_t offset = offsetof(KVCacheThread, numLoops);
  Value address =
      LLVM::GEPOp::create(builder, loc, calls.pointerType, calls.i8,
                          calls.getThread(op), ArrayRef<LLVM::GEPArg>{offset});
  Value count = LLVM::LoadOp::create(builder, loc, calls.i32, address);
  count = LLVM::AddOp::create(builder, loc, count, calls.getI32(op, 1));
  LLVM::StoreOp::create(builder, loc, count, address);
  Value rest = LLVM::AndOp::create(builder, loc, count,
                                   calls.getI32(op, KVCacheManyLoops - 1));
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, rest,
                              calls.getI32(op, 0));
}

/// Loops without calls stay about as fast as they are where nothing is checked.
static void guardLoops(LLVM::LLVMFuncOp function, EmulatorCalls &calls) {
  bool isFast = !calls.isSanitized && !calls.isMetered;
  for (Block *block : getBackEdges(function.getBody())) {
    Operation *terminator = block->getTerminator();
    Value isDue = isFast ? countLoops(terminator, calls) : Value();
    calls.call(terminator,
               isFast ? "kvcacheEmulatorManyLoops" : "kvcacheEmulatorLoop",
               Type(), {});
    branchOnPredicate(terminator->getPrevNode(), isDue);
  }
}

void kvcache::addGuards(gpu::GPUModuleOp module, EmulatorCalls &calls) {
  SmallVector<Operation *> ops;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    guardLoops(function, calls);
    function.getBody().walk([&](Operation *op) { ops.push_back(op); });
  }
  for (Operation *op : ops)
    if (isa<LLVM::SDivOp, LLVM::UDivOp, LLVM::SRemOp, LLVM::URemOp>(op))
      guardDivision(op, calls);
    else if (isa<LLVM::UnreachableOp>(op))
      calls.call(op, "kvcacheEmulatorFail", Type(),
                 calls.getI32(op, KVCacheReachesUnreachable));
}
