//===- BackEndLimits.h - What LLVM compiles for no chip ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TARGET_BACKENDLIMITS_H
#define KVCACHE_LIB_TARGET_BACKENDLIMITS_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// Checks an op of the LLVM dialect in a kernel. The error says what PTX lacks.
LogicalResult checkBackEndLimits(Operation *op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_BACKENDLIMITS_H
