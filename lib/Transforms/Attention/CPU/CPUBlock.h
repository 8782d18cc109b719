//===- CPUBlock.h - Rows that a core computes at once -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUBLOCK_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUBLOCK_H

#include "../AttentionSizes.h"
#include "../QueryRows.h"

namespace mlir::kvcache {

/// Tokens whose scores one vector has.
constexpr int64_t kTileTokens = 16;

/// How attention on a CPU divides its work: blocks of query rows, and vectors.
struct CPUShape {
  explicit CPUShape(AttentionOp op);

  AttentionSizes sizes;
  /// Elements of a key, or a query, that are loaded at once, which are those of
  /// one array, and elements of a value.
  int64_t keyLanes, valueLanes;
  /// Rows that are computed at once: query heads of one token.
  int64_t together;
  /// Tokens whose products are summed at once.
  int64_t columns;
  /// Heads of which few rows are computed one after the other for each tile,
  /// and rows of a block of each.
  int64_t chunk, block;
};

/// A row of a block, or the first of several rows of a token: its number in the
/// block, of the sequence and of the batch, and its heads.
struct CPURow {
  Value inBlock, i, row, queryHead;
  /// Whether it is the first one of the head in the block.
  Value isFirst;
  /// The head of the caches.
  Value head;
};

/// The queries of a block of rows, in f32, and their sums: the accumulator, the
/// largest score and the sum of weights of each row.
class CPURowMemory {
public:
  CPURowMemory(const Frame &frame, const CPUShape &shape)
      : frame(frame), shape(shape) {}

  void allocate();

  /// Loads and stores elements from `d` on of row `k` of those from `row` on.
  Value loadQuery(const CPURow &row, int64_t k, Value d) const;
  void storeQuery(Value elements, const CPURow &row, Value d) const;
  Value loadAcc(Value inBlock, Value d) const;
  void storeAcc(Value elements, Value inBlock, Value d) const;

  /// The largest scores and the sums of rows that are computed at once.
  Value loadMaxima(const CPURow &first) const;
  Value loadTotals(const CPURow &first) const;
  void storeMaxima(Value maxima, const CPURow &first) const;
  void storeTotals(Value totals, const CPURow &first) const;

  /// Stores the largest score and the sum of a row without tokens.
  void clearState(const CPURow &row) const;
  /// The largest score and the sum of one row.
  std::pair<Value, Value> loadState(const CPURow &row) const;

private:
  const Frame &frame;
  const CPUShape &shape;
  Value queries, acc, maxima, totals;
};

/// Allocates floats in the entry block of a function.
Value allocateFloats(const Frame &frame, ArrayRef<int64_t> shape);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_CPU_CPUBLOCK_H
