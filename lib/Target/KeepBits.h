//===- KeepBits.h - Keep the bits of floats that are truncated --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TARGET_KEEPBITS_H
#define KVCACHE_LIB_TARGET_KEEPBITS_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::kvcache {

/// Puts a `mov` behind each float of which code takes only low bits, so that
/// ptxas takes these instead of the number. To run last before the back end.
void keepBits(llvm::Module &module);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_KEEPBITS_H
