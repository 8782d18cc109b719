//===- WrittenMemory.cpp - What kernels may write -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel only reads needs no watch for races, and it mostly reads most.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "kvcache/Support/Pointers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Finds the parameters that an address is computed from.
class Roots {
public:
  /// The parameters, by number.
  llvm::SmallSetVector<BlockArgument, 4> parameters;
  /// Whether the address may be of other memory.
  bool isUnknown = false;

  void add(Value address) {
    if (!isa<LLVM::LLVMPointerType>(address.getType()) || !visit(address))
      isUnknown = true;
  }

private:
  /// Whether the value is, or is computed from, an address that is known.
  bool visit(Value value) {
    if (!seen.insert(value).second)
      return true;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return visitArgument(argument);
    Operation *op = value.getDefiningOp();
    if (isa<LLVM::AllocaOp, LLVM::AddressOfOp>(op))
      return true;
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp, LLVM::PtrToIntOp,
            LLVM::IntToPtrOp, LLVM::BitcastOp>(op))
      return visit(op->getOperand(0));
    if (isa<LLVM::SelectOp>(op)) {
      bool first = visit(op->getOperand(1));
      return visit(op->getOperand(2)) && first;
    }
    // An offset is not an address.
    if (isa<LLVM::AddOp, LLVM::SubOp, LLVM::OrOp, LLVM::AndOp>(op)) {
      bool first = visit(op->getOperand(0));
      return visit(op->getOperand(1)) || first;
    }
    return false;
  }

  bool visitArgument(BlockArgument argument) {
    if (argument.getOwner()->isEntryBlock()) {
      if (!isa<LLVM::LLVMPointerType>(argument.getType()))
        return false;
      parameters.insert(argument);
      return true;
    }
    return llvm::all_of(
        argument.getOwner()->getPredecessors(), [&](Block *block) {
          auto branch = dyn_cast<BranchOpInterface>(block->getTerminator());
          return branch && visitBranch(branch, argument);
        });
  }

  bool visitBranch(BranchOpInterface branch, BlockArgument argument) {
    for (auto [index, successor] : llvm::enumerate(branch->getSuccessors())) {
      if (successor != argument.getOwner())
        continue;
      Value operand =
          branch.getSuccessorOperands(index)[argument.getArgNumber()];
      if (!operand || !visit(operand))
        return false;
    }
    return true;
  }

  llvm::SmallPtrSet<Value, 16> seen;
};

} // namespace

/// The address that an op writes at, or the tensor map that it writes through;
/// null if it writes no global memory.
static Value getWritten(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<LLVM::StoreOp>([](auto op) { return op.getAddr(); })
      .Case<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(
          [](auto op) { return op.getPtr(); })
      .Case<LLVM::MemcpyOp, LLVM::MemmoveOp, LLVM::MemsetOp>(
          [](auto op) { return op.getDst(); })
      .Case<LLVM::MaskedStoreOp>([](auto op) { return op.getData(); })
      .Case<LLVM::masked_scatter>([](auto op) { return op.getPtrs(); })
      .Case<NVVM::CpAsyncBulkSharedCTAToGlobalOp>(
          [](auto op) { return op.getDstMem(); })
      .Case<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(
          [](auto op) { return op.getTmaDescriptor(); })
      .Default(Value());
}

static bool isByValue(Value base) {
  auto argument = dyn_cast<BlockArgument>(base);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return false;
  auto function = cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttr(argument.getArgNumber(),
                             LLVM::LLVMDialect::getByValAttrName()) != nullptr;
}

void kvcache::findWrittenMemory(LLVM::LLVMFuncOp kernel, KernelFacts &facts) {
  Roots roots;
  kernel.walk([&](Operation *op) {
    // A function may write through the pointers that it is given.
    if (isa<LLVM::CallOp>(op))
      roots.isUnknown |= llvm::any_of(op->getOperandTypes(),
                                      llvm::IsaPred<LLVM::LLVMPointerType>);
    if (Value address = getWritten(op))
      roots.add(address);
    // A tensor map in memory may be of any.
    if (auto store = dyn_cast<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(op))
      roots.isUnknown |= !isByValue(getBasePointer(store.getTmaDescriptor()));
  });
  facts.isWritten.assign(kernel.getNumArguments(), 0);
  for (BlockArgument parameter : roots.parameters)
    facts.isWritten[parameter.getArgNumber()] = 1;
  facts.writesAnything = roots.isUnknown;
}
