//===- ExponentBias.h - Exponents that probs are relative to ----*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_EXPONENTBIAS_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_EXPONENTBIAS_H

#include "kvcache/IR/AttentionConfig.h"
#include "kvcache/IR/AttentionOps.h"

namespace mlir::kvcache {

/// The difference of a row's largest score and the exponent that its probs
/// are relative to, in base 2, for a kernel of a config. Probs of f16 are
/// large, so that small ones do not vanish.
float getExponentBias(AttentionOp op, const AttentionConfig &config);

/// The growth of a maximum in base 2 up to which an accumulator in tensor
/// memory, or in that of a CPU, is not scaled. `max_logits` needs exact maxima.
float getExponentSlack(AttentionOp op);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_EXPONENTBIAS_H
