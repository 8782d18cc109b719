//===- Poison.h - Uninitialized values --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_POISON_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_POISON_H

#include "Shadows.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::kvcache {

/// The effect of an op on poisoned operands.
enum class PoisonRule {
  /// It is poisoned by them, and nothing else happens.
  Propagate,
  /// It uses them, and its result is not poisoned.
  Use,
  /// It passes them to a function that isn't inlined, or returns them.
  Call,
  /// It passes them to blocks.
  Branch,
  Load,
  Store,
  /// A variable holds nothing from here on.
  Lifetime,
  /// It runs a program of matrix instructions.
  Matrices,
  LoadTensorMemory,
  StoreTensorMemory,
  /// wgmma, which reads shared memory.
  WarpgroupMma,
  /// Lanes of a warp exchange the values of one operand.
  Exchange
};
PoisonRule getPoisonRule(Operation *op);

/// The operand of an op with the rule `Exchange` that goes to other lanes.
unsigned getExchangedOperand(Operation *op);

/// The size of a variable whose count is known.
uint64_t getVariableBytes(LLVM::AllocaOp variable, const DataLayout &layout);

/// The values of a function that may depend on uninitialized bytes,
/// by a flow of data that is as pessimistic as memory is unknown.
class MaybePoisoned {
public:
  explicit MaybePoisoned(LLVM::LLVMFuncOp function);

  bool contains(Value value) const { return values.contains(value); }
  /// Whether a value in a variable of the thread may be.
  bool isInVariable(LLVM::AllocaOp variable) const {
    return variables.contains(variable);
  }
  /// Whether a variable may be read before it is written.
  bool isReadUnwritten(LLVM::AllocaOp variable) const {
    return unwritten.contains(variable);
  }

  /// The variable that an access is of, if all accesses of it are known to be;
  /// null for other memory.
  LLVM::AllocaOp findVariable(Value address) const;
  const llvm::DenseSet<Operation *> &getFollowed() const { return followed; }

private:
  void findVariables(LLVM::LLVMFuncOp function);
  void visit(Operation *op);
  void visitBranch(Operation *op);
  void add(Value value);

  llvm::DenseSet<Value> values;
  llvm::DenseSet<Operation *> followed, variables, unwritten;
  bool hasChanged = false;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_POISON_H
