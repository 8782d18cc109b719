//===- VerifyIR.h - The verifier as a pass ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_PIPELINES_VERIFYIR_H
#define KVCACHE_LIB_PIPELINES_VERIFYIR_H

#include "mlir/Pass/Pass.h"

namespace mlir::kvcache {

/// `kvcache-verify`: verifies all ops, whether or not the pass manager does. To
/// verify after each pass takes a fifth of the time that a kernel takes, so
/// `compile` switches that off. Pipelines have this pass where ops as users
/// know them have been lowered, and where LLVM comes next.
std::unique_ptr<Pass> createVerifyIR();

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_PIPELINES_VERIFYIR_H
