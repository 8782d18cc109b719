//===- Loops.h - Hints on loops ---------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_LOOPS_H
#define KVCACHE_SUPPORT_LOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::kvcache {

/// Keeps LLVM from unrolling an `scf.for` or the loops of an `scf.parallel`.
void disableUnrolling(Operation *loop);

/// Gives a loop the annotation of another one, if it has one.
void copyLoopAnnotation(Operation *from, Operation *to);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_LOOPS_H
