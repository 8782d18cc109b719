//===- Bounds.h - Bounds of integers ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_LLVMIR_SPLITADDRESSES_BOUNDS_H
#define KVCACHE_LIB_LLVMIR_SPLITADDRESSES_BOUNDS_H

#include "mlir/IR/Operation.h"

#include <limits>
#include <optional>

namespace mlir::kvcache {

/// The maximum length of a chain of ops in the search for a bound.
constexpr int kMaxDepth = 6;

/// The bound of an unbounded value.
constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

/// Returns the value of a constant as an unsigned number.
std::optional<uint64_t> getUnsignedConstant(Value value);

/// Returns the constant by which `op` multiplies its first operand.
std::optional<uint64_t> getConstantFactor(Operation *op);

/// Returns an upper bound of `value` as an unsigned number.
uint64_t getUnsignedBound(Value value, int depth = 0);

/// Whether a 32-bit addition or multiplication does not overflow.
bool isExactIn32Bits(Operation *op);

/// Whether the 64-bit `value` is less than 2^32 whenever `block` runs, because
/// of its own bound or of a branch that leads to the block.
bool fitsIn32Bits(Value value, Block *block);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_LLVMIR_SPLITADDRESSES_BOUNDS_H
