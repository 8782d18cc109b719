//===- ProductChecks.h - Check products in flight ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_PRODUCTCHECKS_H
#define KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_PRODUCTCHECKS_H

#include "mlir/IR/Operation.h"

namespace mlir::kvcache {

/// Checks that nothing uses the registers and tiles of products in flight: a
/// product has one use on each path, the fragment of A no other one before the
/// wait, and `consume` waits for products of its tiles.
LogicalResult checkProducts(Operation *code);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_LOWERFRAGMENTS_PRODUCTCHECKS_H
