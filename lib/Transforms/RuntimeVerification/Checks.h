//===- Checks.h - Checks of an op at run time, by families ------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_RUNTIMEVERIFICATION_CHECKS_H
#define KVCACHE_LIB_TRANSFORMS_RUNTIMEVERIFICATION_CHECKS_H

#include "CheckBuilder.h"

namespace mlir::kvcache {

/// Checks the promises of a cache's tensors: entries of the lookup table for
/// every sequence, and distances that keep pages as aligned as accesses.
void checkBundle(CheckBuilder &c, BundleOpInterface op);

/// Checks that the elements of an access exist, and their pages.
void checkAccess(CheckBuilder &c, AccessOpInterface op);

/// Checks the places of an op on tiles, matrices or fragments; nothing for
/// other ops.
void checkTiles(CheckBuilder &c, Operation *op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_RUNTIMEVERIFICATION_CHECKS_H
