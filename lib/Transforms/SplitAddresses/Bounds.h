//===- Bounds.h - What is known of integers ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SPLITADDRESSES_BOUNDS_H
#define KVCACHE_LIB_TRANSFORMS_SPLITADDRESSES_BOUNDS_H

#include "mlir/IR/Operation.h"

#include <limits>
#include <optional>

namespace mlir::kvcache {

/// How many ops in a row are followed to find a bound.
constexpr int kMaxDepth = 6;

/// The bound of what has none.
constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

/// The constant that `value` is, as an unsigned number.
std::optional<uint64_t> getUnsignedConstant(Value value);

/// The constant by which `op` multiplies its first operand.
std::optional<uint64_t> getConstantFactor(Operation *op);

/// The largest unsigned number that `value` may be, as far as it is known.
uint64_t getUnsignedBound(Value value, int depth = 0);

/// Whether an addition or multiplication of 32 bits does not wrap around.
bool isExactIn32Bits(Operation *op);

/// Whether `value`, of 64 bits, is less than 2^32 wherever `block` runs: by
/// itself, or because a branch that leads there says so.
bool fitsIn32Bits(Value value, Block *block);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_SPLITADDRESSES_BOUNDS_H
