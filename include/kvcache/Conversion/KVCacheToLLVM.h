//===- KVCacheToLLVM.h - Lower what is left to LLVM -------------*- C++ -*-===//
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

namespace LLVM {
class LLVMFuncOp;
} // namespace LLVM

namespace kvcache {

/// Lets `convert-to-llvm`, `convert-gpu-to-nvvm`, `gpu-to-llvm` and what is
/// made of them lower what `convert-kvcache-to-memref` leaves: checks,
/// descriptors and tensor copies.
void registerConvertKVCacheToLLVMInterface(DialectRegistry &registry);

/// Makes a pointer argument of a kernel the 128 bytes of a descriptor, which
/// tensor copies read where they are.
void markDescriptor(LLVM::LLVMFuncOp kernel, unsigned argument);

} // namespace kvcache
} // namespace mlir

#endif // KVCACHE_CONVERSION_KVCACHETOLLVM_H
