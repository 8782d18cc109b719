//===- ValueBounds.h - Bounds of indices ---------------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_VALUEBOUNDS_H
#define KVCACHE_IR_VALUEBOUNDS_H

namespace mlir {
class DialectRegistry;

namespace kvcache {

/// Registers external models of `ValueBoundsOpInterface`, which give analyses
/// the bounds of the results of kvcache ops.
void registerValueBoundsOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_IR_VALUEBOUNDS_H
