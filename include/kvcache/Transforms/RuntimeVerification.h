//===- RuntimeVerification.h - Checks of an op at run time ---- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TRANSFORMS_RUNTIMEVERIFICATION_H
#define KVCACHE_TRANSFORMS_RUNTIMEVERIFICATION_H

#include "mlir/IR/Builders.h"

namespace mlir::kvcache {

/// Inserts a `kvcache.check` at the insertion point of the builder for each
/// precondition of a kvcache op. Returns the number of checks.
unsigned insertRuntimeChecks(OpBuilder &builder, Location loc, Operation *op);

/// Registers external models with which `generate-runtime-verification` inserts
/// these checks.
void registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry);

} // namespace mlir::kvcache

#endif // KVCACHE_TRANSFORMS_RUNTIMEVERIFICATION_H
