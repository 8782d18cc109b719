//===- HostAttention.h - Operands of attention on a CPU ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HOSTATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HOSTATTENTION_H

#include "../Attention/RowNormalizer.h"
#include "../Attention/ScoreMath.h"
#include "../Attention/TokenLoader.h"
#include "../Attention/VisibleTokens.h"
#include "../PlanAttention/AttentionSizes.h"

namespace mlir::kvcache {

/// Floats that are computed with at once.
constexpr int64_t kLanes = 16;
/// The bits of the probability of a token that a row does not see: -0.
constexpr int64_t kUnseenProb = std::numeric_limits<int32_t>::min();

/// The elements of queries and keys of which each array has a multiple.
int64_t getKeyBorder(AttentionOp op);
/// The elements of a key, or a query, that are loaded at once, at most `most`:
/// those of one array.
int64_t getKeyLanes(AttentionOp op, int64_t most);

/// The operands of attention that loops for few and for many rows use.
struct HostAttention {
  HostAttention(AttentionOp op, const Frame &frame);

  /// A query row that shares a head of the cache with others: its number among
  /// the rows of its sequence, its row of `q`, and its query head.
  struct Row {
    Value i, row, queryHead;
  };
  /// Row `number` of those that share a head: query head `number mod group` of
  /// token `number / group`.
  Row getRow(const QueryRows &rows, Value head, Value number) const;

  /// Starts a row: with checks, arrays have it.
  void check(const Row &row) const;
  /// The factor of the queries of a row.
  Value getFactor(const Row &row, Value head) const;
  /// Ends a row: stores its statistics, and returns the factor of its values.
  Value end(const Row &row, Value head, Value rowMax, Value rowSum) const;

  /// Whether any of the factors of accumulators is not 1.
  Value changesAny(Value factors) const;

  /// The tokens that some of the rows [first, last] see.
  TokenRange getSeen(const QueryRows &rows, Value first, Value last) const;

  /// Whether products of many rows are of pairs of bf16, not of f32.
  bool usesPairs() const { return mma != HostMma::FMA; }

  /// Allocates memory on the stack of the function, so that loops around the op
  /// add none.
  Value allocate(ArrayRef<int64_t> shape, Type element) const;

  /// Mutable because accessors of ops are not const.
  mutable AttentionOp op;
  const Frame &frame;
  DeviceMath f;
  AttentionSizes sizes;
  VisibleTokens visible;
  ScoreMath scores;
  RowNormalizer normalizer;
  TokenLoader loader;
  /// The factor of all queries.
  Value factor;
  /// The instructions of many rows, and of few ones if they are `Dot` and those
  /// have pairs: those of the target, if they are for such operands.
  HostMma mma;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTIONCPU_HOSTATTENTION_H
