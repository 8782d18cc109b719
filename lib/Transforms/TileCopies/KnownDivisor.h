//===- KnownDivisor.h - Divisors of index values ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_TILECOPIES_KNOWNDIVISOR_H
#define KVCACHE_LIB_TRANSFORMS_TILECOPIES_KNOWNDIVISOR_H

#include "mlir/IR/Value.h"

namespace mlir::kvcache {

/// The largest number that is known to divide `value`, an index; 0 if the value
/// is 0.
int64_t getKnownDivisor(Value value);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_TILECOPIES_KNOWNDIVISOR_H
