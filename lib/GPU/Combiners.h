//===- Combiners.h - Combiners of reductions --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_GPU_COMBINERS_H
#define KVCACHE_LIB_GPU_COMBINERS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::kvcache {

/// Clones the block of a combiner without its terminator. Returns the result.
inline Value inlineCombiner(OpBuilder &builder, Block &combiner, Value lhs,
                            Value rhs) {
  IRMapping mapping;
  mapping.map(combiner.getArguments(), ValueRange{lhs, rhs});
  for (Operation &op : combiner.without_terminator())
    builder.clone(op, mapping);
  return mapping.lookupOrDefault(combiner.getTerminator()->getOperand(0));
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_GPU_COMBINERS_H
