//===- Predicates.h - Instructions that may not happen ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_EMULATOR_CONVERSION_PREDICATES_H
#define KVCACHE_LIB_EMULATOR_CONVERSION_PREDICATES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// Puts an op without results into a block of its own, which runs where
/// `predicate` is set; where it is null, that is everywhere.
inline void branchOnPredicate(Operation *op, Value predicate) {
  if (!predicate)
    return;
  Block *before = op->getBlock();
  Block *own = before->splitBlock(op);
  Block *next = own->splitBlock(op->getNextNode());
  OpBuilder builder = OpBuilder::atBlockEnd(before);
  LLVM::CondBrOp::create(builder, op->getLoc(), predicate, own, next);
  builder.setInsertionPointToEnd(own);
  LLVM::BrOp::create(builder, op->getLoc(), next);
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_EMULATOR_CONVERSION_PREDICATES_H
