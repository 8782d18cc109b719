//===- TableRange.h - Which table reads are provably in range ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_TABLERANGE_H
#define KVCACHE_LIB_IR_TABLERANGE_H

#include "kvcache/IR/KVCache.h"

namespace mlir::kvcache {

/// Whether the length of sequence `batch` provably exists: `batch` is a
/// constant below the static size of the lengths behind `cache`.
bool isLengthInRange(Value cache, Value batch);

/// The same for the table entries of `tokens` tokens of sequence `batch` from
/// `token` on.
bool areEntriesInRange(Value cache, Value batch, Value token, int64_t tokens);

inline Speculation::Speculatability speculateIf(bool inRange) {
  return inRange ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_TABLERANGE_H
