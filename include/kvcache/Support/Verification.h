//===- Verification.h - What verifiers can't take ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_SUPPORT_VERIFICATION_H
#define KVCACHE_SUPPORT_VERIFICATION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

namespace mlir {
class DialectRegistry;
namespace LLVM {
class InvokeOp;
} // namespace LLVM
} // namespace mlir

namespace mlir::kvcache {

/// Whether an index of an element is one that MLIR reads as it is: of a
/// position in a struct or an array it takes the lower 32 bits.
inline bool isElementIndex(int64_t index) {
  return index >= 0 && llvm::isInt<32>(index);
}

/// Analyses of calls take the first operand for the function where no name
/// stands, without looking for one. Null passes.
LogicalResult checkCallee(LLVM::InvokeOp op);

/// Checks ops that may not have been verified yet for what upstream's verifiers
/// and printers end the process on.
LogicalResult checkBeforeVerification(Operation *op);

/// Checks the ops of a text, whose parts `splitMarker` separates if it has
/// characters. Prints errors. A text that can't be parsed passes, because its
/// next parser reports it.
LogicalResult checkBeforeVerification(StringRef text, StringRef filename,
                                      StringRef splitMarker,
                                      const DialectRegistry &registry);

} // namespace mlir::kvcache

#endif // KVCACHE_SUPPORT_VERIFICATION_H
