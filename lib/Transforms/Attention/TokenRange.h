//===- TokenRange.h - Ranges of tokens that rows see ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_TOKENRANGE_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_TOKENRANGE_H

#include "mlir/IR/Value.h"

namespace mlir::kvcache {

/// Tokens [from, to).
struct TokenRange {
  Value from, to;
};

/// Tokens [from, to) of a sequence: each token that some row of a box sees is
/// in `any`, and each token in `all` is seen by all rows. `all` may have its
/// end before its begin.
struct AdmittedTokens {
  TokenRange any, all;
};

/// Whether some or all pairs of rows and tokens are admitted. `any` is false
/// only if none is, and `all` true only if all are.
struct AdmittedPairs {
  Value any, all;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_TOKENRANGE_H
