//===- UniformValues.cpp - Values that a block's threads share ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UniformValues.h"

#include "kvcache/IR/FragmentOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Whether all effects of an op are reads, and it has no region.
static bool atMostReads(Operation *op) {
  if (op->getNumRegions())
    return false;
  if (isMemoryEffectFree(op))
    return true;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects && effects.onlyHasEffect<MemoryEffects::Read>();
}

// What was assumed before the last different value was found may be wrong.
bool UniformValues::contains(Value value) {
  while (true) {
    size_t before = different.size();
    assumed.clear();
    bool isUniform = visit(value);
    if (different.size() == before)
      return isUniform;
  }
}

bool UniformValues::visit(Value value) {
  if (different.contains(value))
    return false;
  if (!assumed.insert(value).second || compute(value))
    return true;
  different.insert(value);
  return false;
}

bool UniformValues::compute(Value value) {
  // The elements of a fragment are those of a thread.
  if (isa<FragmentType>(value.getType()))
    return false;
  if (auto result = dyn_cast<OpResult>(value)) {
    Operation *op = result.getOwner();
    unsigned number = result.getResultNumber();
    return TypeSwitch<Operation *, bool>(op)
        .Case([&](scf::IfOp branch) { return computeYielded(branch, number); })
        .Case([&](scf::ForOp loop) { return computeCarried(loop, number); })
        .Case([&](scf::WhileOp loop) { return computePassed(loop, number); })
        .Default([&](Operation *) { return compute(op); });
  }
  auto argument = cast<BlockArgument>(value);
  Block *block = argument.getOwner();
  unsigned number = argument.getArgNumber();
  return TypeSwitch<Operation *, bool>(block->getParentOp())
      .Case([&](FunctionOpInterface) { return block->isEntryBlock(); })
      .Case([&](scf::ForOp loop) {
        return number ? computeCarried(loop, number - 1)
                      : visit(loop.getLowerBound()) && visit(loop.getStep());
      })
      .Case([&](scf::WhileOp loop) {
        return block == loop.getAfterBody() ? computePassed(loop, number)
                                            : computeCarried(loop, number);
      })
      .Default(false);
}

bool UniformValues::compute(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<gpu::BlockIdOp, gpu::BlockDimOp, gpu::GridDimOp>(op))
    return true;
  // Without operands, an op may read a register of the thread.
  return op->getNumOperands() && atMostReads(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return visit(operand); });
}

bool UniformValues::computeYielded(scf::IfOp branch, unsigned number) {
  return visit(branch.getCondition()) &&
         visit(branch.thenYield().getOperand(number)) &&
         visit(branch.elseYield().getOperand(number));
}

bool UniformValues::computeCarried(scf::ForOp loop, unsigned number) {
  return visit(loop.getLowerBound()) && visit(loop.getUpperBound()) &&
         visit(loop.getStep()) && visit(loop.getInitArgs()[number]) &&
         visit(loop.getYieldedValues()[number]);
}

bool UniformValues::computeCarried(scf::WhileOp loop, unsigned number) {
  return visit(loop.getConditionOp().getCondition()) &&
         visit(loop.getInits()[number]) &&
         visit(loop.getYieldOp()->getOperand(number));
}

bool UniformValues::computePassed(scf::WhileOp loop, unsigned number) {
  scf::ConditionOp condition = loop.getConditionOp();
  return visit(condition.getCondition()) && visit(condition.getArgs()[number]);
}
