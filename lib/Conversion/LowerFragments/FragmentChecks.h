//===- FragmentChecks.h - Check code with fragments -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_FRAGMENTCHECKS_H
#define KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_FRAGMENTCHECKS_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// Whether an op has fragments, or products in flight, as operands, results or
/// arguments of a function.
bool usesFragments(Operation *op);

/// Checks what the verifiers of ops in `code` do not see: which code has
/// fragments, products in flight, and races through `scratch`.
LogicalResult checkFragments(Operation *code);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_FRAGMENTCHECKS_H
