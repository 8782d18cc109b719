//===- Poison.h - Values that nobody has written --------------- -*- C++
//-*-===//
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

/// What an op does with poisoned operands.
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
  LoadMatrix,
  StoreMatrix,
  Mma,
  /// Lanes of a warp exchange the values of one operand.
  Exchange
};
PoisonRule getPoisonRule(Operation *op);

/// The operand of an op with the rule `Exchange` that goes to other lanes.
unsigned getExchangedOperand(Operation *op);

/// The values of a function that may depend on bytes that nobody has written,
/// by a flow of data that is as pessimistic as memory is unknown.
class MaybePoisoned {
public:
  explicit MaybePoisoned(LLVM::LLVMFuncOp function);

  bool contains(Value value) const { return values.contains(value); }
  /// Whether a value in a variable of the thread may be.
  bool isInVariable(LLVM::AllocaOp variable) const {
    return variables.contains(variable);
  }

  /// The variable that an access is of, if all accesses of it are known to be;
  /// null for other memory.
  LLVM::AllocaOp findVariable(Value address) const;

private:
  void findVariables(LLVM::LLVMFuncOp function);
  void visit(Operation *op);
  void visitBranch(Operation *op);
  void add(Value value);

  llvm::DenseSet<Value> values;
  llvm::DenseSet<Operation *> followed, variables;
  bool hasChanged = false;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_POISON_H
