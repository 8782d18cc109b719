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

/// Keeps LLVM from unrolling a loop of a kernel.
void disableUnrolling(scf::ForOp loop);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_LOOPS_H
