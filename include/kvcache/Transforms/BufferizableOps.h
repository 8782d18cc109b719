//===- BufferizableOps.h - Bufferization of whole-cache ops -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TRANSFORMS_BUFFERIZABLEOPS_H
#define KVCACHE_TRANSFORMS_BUFFERIZABLEOPS_H

namespace mlir {
class DialectRegistry;

namespace kvcache {

/// Registers how `one-shot-bufferize` makes memrefs of the tensors of ops on
/// whole caches. Caches are no tensors, and stay as they are.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_TRANSFORMS_BUFFERIZABLEOPS_H
