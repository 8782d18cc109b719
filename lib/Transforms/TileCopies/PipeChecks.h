//===- PipeChecks.h - Checks of pipes before they are lowered - -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPECHECKS_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPECHECKS_H

#include "Choice.h"

#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"

namespace mlir::kvcache {

/// Checks that a pipe is on the CPU, or in a kernel with a target, and that no
/// other op takes it: the verifier can't, because passes may erase that op.
LogicalResult checkPipe(PipeOp pipe, const CopySite &site);

/// Checks the copies of a pipe, which `numCopies` counts.
LogicalResult checkCopies(PipeOp pipe, const CopySite &site,
                          unsigned &numCopies);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_PIPECHECKS_H
