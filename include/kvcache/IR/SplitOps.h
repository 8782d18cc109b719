//===- SplitOps.h - Splits of attention -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_SPLITOPS_H
#define KVCACHE_IR_SPLITOPS_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache {

/// The workspace of attention. A slot is a row that may be split: `rows` of
/// each sequence, for `heads` query heads.
struct WorkspaceShape {
  int64_t heads, elements, splits, rows;

  static WorkspaceShape get(int64_t heads, int64_t elements, SplitAttr split) {
    return {heads, elements, split.getMax(), split.getRows()};
  }
  /// Bytes of a slot: the accumulator, the maximum and the sum of exponentials
  /// of each split.
  uint64_t getSlotBytes() const {
    uint64_t words = llvm::SaturatingAdd<uint64_t>(elements, 2);
    uint64_t all = llvm::SaturatingMultiply<uint64_t>(splits, words);
    return llvm::SaturatingMultiply<uint64_t>(all, 4 * heads);
  }
  /// Bytes before all slots: the counter of the persistent scheduler.
  static constexpr int64_t kSchedulerBytes = 16;
  /// Bytes of the slots of a sequence, which may be too many for 64 bits: then
  /// the largest number.
  uint64_t getBytes() const {
    return llvm::SaturatingMultiply<uint64_t>(rows, getSlotBytes());
  }
};

} // namespace mlir::kvcache

#define GET_OP_CLASSES
#include "kvcache/IR/SplitOps.h.inc"

#endif // KVCACHE_IR_SPLITOPS_H
