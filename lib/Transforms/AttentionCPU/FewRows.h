//===- FewRows.h - Attention of few rows on a CPU ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_FEWROWS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_FEWROWS_H

#include "RowGroup.h"

namespace mlir::kvcache {

/// Attention of few rows of a sequence, such as a decode step. It takes about
/// as long as reading the cache: keys and values become f32 in registers, and
/// the next tokens are prefetched in between the products.
class FewRows {
public:
  explicit FewRows(const HostAttention &attention);

  /// Heads that are computed one after the other for each tile of tokens: those
  /// whose elements lie beside each other in memory.
  int64_t getHeads() const { return memory.heads; }
  /// The most rows that share a head, if they are few.
  static int64_t getMost(const HostAttention &attention);
  /// Computes all `count` rows of `rows` for `getHeads()` heads from one on.
  void compute(const QueryRows &rows, Value firstHead, Value count) const;

private:
  const HostAttention &attention;
  FewRowsMemory memory;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_FEWROWS_H
