//===- PoisonRules.cpp - What ops do with poisoned values -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Matrices.h"
#include "Poison.h"
#include "Warpgroups.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Conversions and arithmetic of the chip, which the dialect has among much
/// that has effects.
static bool isArithmeticOfChip(Operation *op) {
  return op->getName().getStringRef().starts_with("nvvm.convert.") ||
         isa<NVVM::PermuteOp, NVVM::DotAccumulate4WayOp,
             NVVM::DotAccumulate2WayOp, NVVM::RcpApproxFtzF32Op>(op);
}

static bool hasShadows(Operation *op) {
  return op->getNumResults() == 1 &&
         llvm::all_of(op->getResults(), ShadowBuilder::hasShadow);
}

static PoisonRule getCallRule(LLVM::CallOp op) {
  std::optional<StringRef> callee = op.getCallee();
  // The math library has no effects, but for results through pointers.
  bool isMath = callee && callee->starts_with("__nv_");
  if (isMath && hasShadows(op))
    return PoisonRule::Propagate;
  bool isOfSystem = callee == "vprintf" || callee == "__assertfail";
  return isMath || isOfSystem ? PoisonRule::Use : PoisonRule::Call;
}

PoisonRule kvcache::getPoisonRule(Operation *op) {
  if (isMatrixProgram(op))
    return PoisonRule::Matrices;
  if (isa<BranchOpInterface>(op))
    return PoisonRule::Branch;
  auto propagateIf = [&](bool propagates) {
    return propagates && hasShadows(op) ? PoisonRule::Propagate
                                        : PoisonRule::Use;
  };
  if (isa<NVVM::ShflOp, NVVM::VoteSyncOp, NVVM::MatchSyncOp, NVVM::ReduxOp>(op))
    return hasShadows(op) ? PoisonRule::Exchange : PoisonRule::Use;
  if (isWgmma(op))
    return getWgmmaForm(op) ? PoisonRule::WarpgroupMma : PoisonRule::Use;
  return llvm::TypeSwitch<Operation *, PoisonRule>(op)
      .Case([](LLVM::LoadOp) { return PoisonRule::Load; })
      .Case<LLVM::LifetimeStartOp, LLVM::LifetimeEndOp>(
          [](auto) { return PoisonRule::Lifetime; })
      .Case([](LLVM::StoreOp) { return PoisonRule::Store; })
      .Case([](NVVM::Tcgen05LdOp) { return PoisonRule::LoadTensorMemory; })
      .Case([](NVVM::Tcgen05StOp) { return PoisonRule::StoreTensorMemory; })
      .Case([](LLVM::ReturnOp) { return PoisonRule::Call; })
      .Case([](LLVM::CallOp op) { return getCallRule(op); })
      .Case([&](LLVM::CallIntrinsicOp) { return propagateIf(true); })
      .Default([&](Operation *op) {
        if (isa_and_present<NVVM::NVVMDialect>(op->getDialect()))
          return propagateIf(isArithmeticOfChip(op));
        return propagateIf(isMemoryEffectFree(op));
      });
}

unsigned kvcache::getExchangedOperand(Operation *op) {
  // Of redux.sync the value is the first one, else the mask.
  return isa<NVVM::ReduxOp>(op) ? 0 : 1;
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

/// Whether all uses of an address are loads and stores of values with shadows.
static bool isFollowed(Value address) {
  return llvm::all_of(address.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(user))
      return use.getOperandNumber() == 0 && isFollowed(user->getResult(0));
    if (auto store = dyn_cast<LLVM::StoreOp>(user))
      return use.get() == store.getAddr() && use.get() != store.getValue() &&
             ShadowBuilder::hasShadow(store.getValue());
    if (auto load = dyn_cast<LLVM::LoadOp>(user))
      return ShadowBuilder::hasShadow(load.getResult());
    return isa<LLVM::LifetimeStartOp, LLVM::LifetimeEndOp>(user);
  });
}

/// The loads, the stores and the ends of a variable that is followed.
static void findAccesses(Value address, SmallVector<Operation *> &accesses) {
  for (Operation *user : address.getUsers()) {
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(user))
      findAccesses(user->getResult(0), accesses);
    else
      accesses.push_back(user);
  }
}

/// Whether a store of all of a variable comes before each load of it.
static bool isWrittenFirst(LLVM::AllocaOp variable,
                           const DominanceInfo &dominance,
                           const DataLayout &layout) {
  SmallVector<Operation *> accesses;
  findAccesses(variable, accesses);
  unsigned lives = 0;
  SmallVector<LLVM::StoreOp> stores;
  int64_t bytes = getVariableBytes(variable, layout);
  for (Operation *op : accesses) {
    lives += isa<LLVM::LifetimeStartOp, LLVM::LifetimeEndOp>(op);
    auto store = dyn_cast<LLVM::StoreOp>(op);
    if (store && store.getAddr() == variable.getResult() &&
        getStoreBytes(store.getValue().getType(), layout) >= bytes)
      stores.push_back(store);
  }
  // What begins once has no end between the two.
  return lives <= 1 && llvm::all_of(accesses, [&](Operation *op) {
           return !isa<LLVM::LoadOp>(op) ||
                  llvm::any_of(stores, [&](LLVM::StoreOp store) {
                    return dominance.properlyDominates(store, op);
                  });
         });
}

void MaybePoisoned::findVariables(LLVM::LLVMFuncOp function) {
  DataLayout layout = DataLayout::closest(function);
  DominanceInfo dominance(function);
  function.walk([&](LLVM::AllocaOp op) {
    if (!op->getBlock()->isEntryBlock() || op->getParentOp() != function ||
        !matchPattern(op.getArraySize(), m_Constant()) ||
        !isa<LLVM::LLVMPointerType>(op.getType()) || !isFollowed(op))
      return;
    followed.insert(op);
    if (!isWrittenFirst(op, dominance, layout))
      unwritten.insert(op);
  });
}

uint64_t kvcache::getVariableBytes(LLVM::AllocaOp variable,
                                   const DataLayout &layout) {
  APInt count;
  matchPattern(variable.getArraySize(), m_ConstantInt(&count));
  return count.getZExtValue() * layout.getTypeSize(variable.getElemType());
}

LLVM::AllocaOp MaybePoisoned::findVariable(Value address) const {
  if (!isa<LLVM::LLVMPointerType>(address.getType()))
    return {};
  auto variable = getBasePointer(address).getDefiningOp<LLVM::AllocaOp>();
  return variable && followed.contains(variable) ? variable : LLVM::AllocaOp();
}

//===----------------------------------------------------------------------===//
// Flow of data
//===----------------------------------------------------------------------===//

MaybePoisoned::MaybePoisoned(LLVM::LLVMFuncOp function) {
  findVariables(function);
  do {
    hasChanged = false;
    for (Block &block : function.getBody())
      for (Operation &op : block)
        visit(&op);
  } while (hasChanged);
}

void MaybePoisoned::add(Value value) {
  hasChanged |= values.insert(value).second;
}

void MaybePoisoned::visitBranch(Operation *op) {
  auto branch = cast<BranchOpInterface>(op);
  for (auto [index, successor] : llvm::enumerate(op->getSuccessors())) {
    SuccessorOperands operands = branch.getSuccessorOperands(index);
    for (BlockArgument argument : successor->getArguments()) {
      Value operand = operands[argument.getArgNumber()];
      if (operand && contains(operand) && ShadowBuilder::hasShadow(argument))
        add(argument);
    }
  }
}

void MaybePoisoned::visit(Operation *op) {
  auto isPoisoned = [&](Value value) { return contains(value); };
  switch (getPoisonRule(op)) {
  case PoisonRule::Load: {
    auto load = cast<LLVM::LoadOp>(op);
    LLVM::AllocaOp variable = findVariable(load.getAddr());
    bool isWritten =
        variable && !isInVariable(variable) && !isReadUnwritten(variable);
    if (hasShadows(op) && !isWritten)
      add(load.getResult());
    return;
  }
  case PoisonRule::Store: {
    auto store = cast<LLVM::StoreOp>(op);
    LLVM::AllocaOp variable = findVariable(store.getAddr());
    if (variable && contains(store.getValue()))
      hasChanged |= variables.insert(variable).second;
    return;
  }
  case PoisonRule::LoadTensorMemory:
  case PoisonRule::Matrices:
  case PoisonRule::WarpgroupMma:
    // Most load what they work with.
    if (hasShadows(op))
      add(op->getResult(0));
    return;
  case PoisonRule::Branch:
    return visitBranch(op);
  case PoisonRule::Propagate:
    if (llvm::any_of(op->getOperands(), isPoisoned))
      add(op->getResult(0));
    return;
  case PoisonRule::Exchange:
    if (contains(op->getOperand(getExchangedOperand(op))))
      add(op->getResult(0));
    return;
  case PoisonRule::Lifetime:
  case PoisonRule::Use:
  case PoisonRule::Call:
  case PoisonRule::StoreTensorMemory:
    return;
  }
}
