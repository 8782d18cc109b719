//===- UniformValues.h - Values that a block's threads share ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SCHEDULES_UNIFORMVALUES_H
#define KVCACHE_LIB_TRANSFORMS_SCHEDULES_UNIFORMVALUES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseSet.h"

namespace mlir::kvcache {

/// Finds values that surely are the same in all threads of a block.
///
/// These are arguments of kernels, numbers of blocks, and what pure ops, loads,
/// and structured control flow compute of them. A load gives all threads one
/// number, because a store that another thread may still read past is a race.
class UniformValues {
public:
  bool contains(Value value);

private:
  bool visit(Value value);
  bool compute(Value value);
  bool compute(Operation *op);
  bool computeYielded(scf::IfOp branch, unsigned number);
  /// Whether a value that a loop carries is uniform in each iteration.
  bool computeCarried(scf::ForOp loop, unsigned number);
  bool computeCarried(scf::WhileOp loop, unsigned number);
  /// Whether a value that the condition of a loop passes on is uniform.
  bool computePassed(scf::WhileOp loop, unsigned number);

  /// Values that may be different, and others that may be uniform: a value that
  /// a loop carries is until something else says that it is not.
  llvm::DenseSet<Value> different, assumed;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SCHEDULES_UNIFORMVALUES_H
