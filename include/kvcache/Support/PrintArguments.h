//===- PrintArguments.h - Operands of printf --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_PRINTARGUMENTS_H
#define KVCACHE_SUPPORT_PRINTARGUMENTS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>

namespace mlir::kvcache {

/// The format of a print and its operands, as C's printf takes them: integers
/// of 64 bits, characters of 32 bits, and f64.
struct PrintArguments {
  std::string format;
  SmallVector<Value> operands;
};

/// Converts the format and the operands of a print, with new ops before it.
/// Fails with an error at the op where they do not fit each other.
FailureOr<PrintArguments> getPrintArguments(gpu::PrintfOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_PRINTARGUMENTS_H
