//===- Translator.h - Inline PTX as ops of NVVM and LLVM --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IMPORT_PTX_TRANSLATOR_H
#define KVCACHE_LIB_IMPORT_PTX_TRANSLATOR_H

#include "Emitter.h"

namespace mlir::kvcache::ptx {

/// Builds the ops of a program before an op, whose block it splits where
/// the program has branches or predicates.
class Translator {
public:
  /// The values of the registers at the beginning of the program; null for
  /// those that hold nothing yet.
  Translator(Operation *op, const Program &program, Registers values);

  /// Fails with an error at the op.
  LogicalResult translate();

  /// The value of a register after the program: an integer, or the type it
  /// was given in; null if it is uninitialized.
  Value getValue(unsigned number) const { return values[number]; }

private:
  LogicalResult translate(const Statement &statement);
  LogicalResult emit(const Statement &statement);
  LogicalResult emitGuarded(const Statement &statement);
  LogicalResult emitBothScales(const Statement &statement);
  void branch(const Statement &statement);
  void enter(unsigned label);

  Value getGuard(const Statement &statement);
  SmallVector<Value> getWritten();
  void setWritten(ValueRange arguments);
  /// Before a block, or at the end of the function.
  Block *createBlock(Block *before);
  Block *getTarget(unsigned label);

  Operation *op;
  const Program &program;
  OpBuilder builder;
  Registers values;
  /// The registers that the program writes: the arguments of its blocks.
  SmallVector<unsigned> written;
  /// The blocks of labels, if a branch to them exists.
  SmallVector<Block *> targets;
  /// Whether the next statement can be reached.
  bool isReachable = true;
};

} // namespace mlir::kvcache::ptx

#endif // KVCACHE_LIB_IMPORT_PTX_TRANSLATOR_H
