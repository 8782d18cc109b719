//===- Sums.h - Addresses as sums -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_SPLITADDRESSES_SUMS_H
#define KVCACHE_LIB_TRANSFORMS_SPLITADDRESSES_SUMS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::kvcache {

/// A value, or the product of two, times a constant.
struct Term {
  Value value, other;
  uint64_t factor;

  /// A value of 32 bits counts as an unsigned number.
  bool isNarrow() const { return value.getType().isInteger(32); }
  /// The largest number that the term may be, as far as it is known.
  uint64_t getBound() const;
};

/// The unsigned number of 32 bits that `value` extends, if it does.
Value getExtended(Value value);

/// A sum of terms and a constant, modulo 2^64.
class Sum {
public:
  /// Adds a value of 64 bits, as `block` sees it, times a factor. Additions,
  /// multiplications, extensions and truncations are taken apart; so are
  /// quotients and remainders, if the dividend is a sum that they split.
  void add(Value value, uint64_t factor, Block *block);
  /// Replaces `x div c * c` and `x mod c` by x, which the author of a linear
  /// thread id took apart and the address puts together again.
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

#endif // KVCACHE_LIB_TRANSFORMS_SPLITADDRESSES_SUMS_H
