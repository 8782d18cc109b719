//===- KVCacheToLLVM.h - Lower remaining kvcache ops to LLVM ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_CONVERSION_KVCACHETOLLVM_H
#define KVCACHE_CONVERSION_KVCACHETOLLVM_H

#include <cstdint>

namespace mlir {
class DialectRegistry;

namespace kvcache {

/// Registers the interface with which `convert-to-llvm`, `convert-gpu-to-nvvm`,
/// `gpu-to-llvm` and pipelines of these passes lower the ops that
/// `convert-kvcache-to-memref` does not: checks, descriptors and tensor copies.
void registerConvertKVCacheToLLVMInterface(DialectRegistry &registry);

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_CONVERSION_KVCACHETOLLVM_H
