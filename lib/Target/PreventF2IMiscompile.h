//===- PreventF2IMiscompile.h - Low bits of floats in ptxas -----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TARGET_PREVENTF2IMISCOMPILE_H
#define KVCACHE_LIB_TARGET_PREVENTF2IMISCOMPILE_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::kvcache {

/// Inserts a `mov` after each float of which code uses only low bits, so that
/// ptxas does not convert the float to an integer. Runs last before the back
/// end.
void preventF2IMiscompile(llvm::Module &module);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TARGET_PREVENTF2IMISCOMPILE_H
