//===- Expansion.h - Copies, waits and pipes of a function ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EXPANSION_H
#define KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EXPANSION_H

#include "Choice.h"
#include "KernelSetup.h"

namespace mlir::kvcache {

/// A copy with how it is done, and the descriptor that this takes.
struct Plan {
  Choice choice;
  Value descriptor = {};
};
using Plans = DenseMap<Operation *, Plan>;

/// Whether the copy's one wait stands after it in its block, so that a barrier
/// of its own can tell when it is complete.
bool hasOwnWait(Operation *copy);

/// Expands the copies outside of pipes, and all waits but those for stores.
/// `chip` and `setup` are null outside of kernels with a target.
void expandCopies(ArrayRef<Operation *> copies, ArrayRef<WaitOp> waits,
                  const Plans &plans, const Chip *chip, KernelSetup *setup);

/// Expands a pipe with all that is produced and consumed. `setup` is null on
/// the CPU.
LogicalResult expandPipe(PipeOp pipe, const Plans &plans, const Chip *chip,
                         KernelSetup *setup);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_EXPANDCOPIES_EXPANSION_H
