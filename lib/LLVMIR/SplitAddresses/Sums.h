//===- Sums.h - Addresses as sums -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_LLVMIR_SPLITADDRESSES_SUMS_H
#define KVCACHE_LIB_LLVMIR_SPLITADDRESSES_SUMS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// A value, or the product of two values, times a constant.
struct Term {
  Value value, other;
  uint64_t factor;

  /// Whether the value has 32 bits. Such a value is an unsigned number.
  bool isNarrow() const { return value.getType().isInteger(32); }
  /// An upper bound of the term.
  uint64_t getBound() const;
};

/// Returns the unsigned 32-bit number that `value` extends, or null.
Value getExtended(Value value);

/// A sum of terms and a constant, modulo 2^64.
class Sum {
public:
  /// Adds a 64-bit value, as seen from `block`, times a factor. Splits
  /// additions, multiplications, extensions and truncations; also quotients and
  /// remainders if they distribute over the dividend.
  void add(Value value, uint64_t factor, Block *block);
  /// Replaces the sum of `x div c * c` and `x mod c` by x. Kernels split a
  /// linear thread id in this way, and addresses recombine it.
  void reunite(Block *block);

  SmallVector<Term> terms;
  uint64_t constant = 0;

private:
  Operation *takeOp(Value value);
  void addTerm(Value value, Value other, uint64_t factor);
  void addNarrow(Value value, uint64_t factor, Block *block);
  bool addQuotient(Operation *op, uint64_t factor, Block *block);
  bool reuniteOnce(Block *block);
  uint64_t getBound() const;

  int numOps = 0;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_LLVMIR_SPLITADDRESSES_SUMS_H
