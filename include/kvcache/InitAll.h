//===- InitAll.h - Register everything -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_INITALL_H
#define KVCACHE_INITALL_H

namespace mlir {
class DialectRegistry;

namespace kvcache {

/// Registers the kvcache dialect with all of its interfaces, and the upstream
/// interfaces that its pipelines need: the translations of LLVM dialects, and
/// the NVVM target.
void registerDialect(DialectRegistry &registry);

/// Registers our passes and pipelines. May be called several times.
void registerPasses();

/// Registers the kvcache dialect, and all upstream dialects and extensions.
void registerAllDialects(DialectRegistry &registry);

/// Registers our passes and pipelines, and all upstream passes, in the
/// process-wide registry. May be called several times.
void registerAllPasses();

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_INITALL_H
