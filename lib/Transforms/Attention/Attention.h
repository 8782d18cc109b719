//===- Attention.h - Common parts of attention expansions -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_ATTENTION_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_ATTENTION_H

#include "../ExpandOps/DeviceMath.h"
#include "../ExpandOps/ExpandOps.h"
#include "../ExpandOps/Heads.h"
#include "../TileAttention/UnitSchedule.h"
#include "AttentionChoices.h"

#include <limits>

namespace mlir::kvcache {

/// Query rows that may see the same tokens: those of a sequence, or with sparse
/// rows one.
struct QueryRows {
  /// The sequence in the batch; null with sparse rows.
  Value batch;
  /// The first row, and how many there are.
  Value first, count;
  /// Tokens, of which the first row stands at number `own`; with sparse rows,
  /// their columns.
  Value tokens, own;
};

/// Tokens [from, to).
struct TokenRange {
  Value from, to;
};

/// The maximum of no scores: a score of -inf has no weight beside it.
constexpr float kLowest = std::numeric_limits<float>::lowest();
/// Weights of f16 are at most 2^15, so that small ones do not vanish.
constexpr float kHalfBias = 15;
/// The difference of a row's largest score and the exponent that its weights
/// are relative to, for weights of a type.
inline float getWeightBias(FloatType weights) {
  return weights.isF16() ? kHalfBias : 0;
}
/// Sums in tensor memory are scaled only where the maximum grows by a factor of
/// more than 2^8: weights are at most that large.
constexpr float kSlack = 8;

/// The sum of exponentials of a row: `total` times 2^max. Its weighted values
/// are to be multiplied by `factor` as well.
struct RowSum {
  Value max, total, factor;
};

/// The common part of expansions of attention for the CPU and for GPUs.
class AttentionBase {
public:
  AttentionBase(AttentionOp op, const Frame &frame);

  /// With checks, the arrays have this row.
  void checkRow(Value row);

  /// The rows of a sequence; the second loads no tokens.
  QueryRows getRowsOfSequence(Value batch);
  QueryRows getRows(Value batch);
  QueryRows getSparseRow(Value row);

  /// The tokens that row `first + i` sees by position, and of these those from
  /// its first range to its last one.
  TokenRange getSeenByPosition(const QueryRows &rows, Value i);
  TokenRange getSeen(const QueryRows &rows, Value i);
  /// Whether the mask lets row `first + i` see a token.
  Value isUnmasked(const QueryRows &rows, Value i, Value token);

  /// The place of a token of the rows. With sparse rows, `id` is the token's.
  Place getPlace(const QueryRows &rows, Value token, Value id);
  /// The elements of queries, in one array or two.
  JoinedRows getQueries() { return {op.getQ(), op.getQRope()}; }
  /// Whether scores and weights are multiplied by the scales of the tokens of a
  /// cache, and elements are loaded without them.
  bool scalesScores(Value cache);
  /// Loads such elements of a key or a value.
  Value loadRow(Value cache, const Place &place, Value d, int64_t count,
                Type lane, bool nontemporal = false);

  /// The encoded row of a column of a sparse row, signed.
  Value loadId(const QueryRows &rows, Value column);

  /// The factor of queries, with which scores are in base 2, in natural units
  /// for a region `score`, or with a soft cap arguments of the tanh.
  Value getFactor();
  /// The factor, with the static scales of the keys and the queries of a head.
  Value getFactor(Value factor, Value queryHead);
  /// Scores of the products of queries and keys, in base 2, or natural units
  /// for a region `score`.
  Value applySoftCap(Value products);

  /// Whether tokens that rows see by position have scores, which regions may
  /// make -inf.
  Value isAdmitted(Value isSeen, Value scores);

  /// Adds the sink of a head, if there are sinks.
  RowSum addSink(const RowSum &sum, Value queryHead);
  /// The factor of the weighted values of a row, with the static scale of
  /// values; 0 without tokens.
  Value getQuotient(const RowSum &sum, Value queryHead);
  /// The natural logarithm of a row's sum, -inf without tokens.
  Value getLogarithm(const RowSum &sum);
  /// The largest score of a row, from a sum without the sink whose maximum is
  /// lower by `bias`; -inf without tokens.
  Value getLargestScore(const RowSum &scores, float bias);
  /// The sum that `lse` is the logarithm of: `scores`, or `all` with the sink.
  const RowSum &getLseSum(const RowSum &scores, const RowSum &all) {
    return op.getSinklessLse() ? scores : all;
  }
  /// Stores the logarithm and the largest score of a row, if they are wanted
  /// and there is room for them.
  void storeStatistics(const RowSum &scores, const RowSum &all, float bias,
                       Value row, Value queryHead);

  /// Makes the workspace of rows that are split: `split_rows` slots for each
  /// sequence. The second checks its size, where accesses are checked.
  void findWorkspace();
  void makeWorkspace();
  /// Blocks with parts are in layers of a grid: the first parts of all slots,
  /// the second parts and so on, so that blocks without work come last. A layer
  /// has one part of a slot, unless there were too many layers.
  int64_t countPartsOfLayer();
  int64_t countLayersOfParts();
  /// Whether a sequence of `count` rows is computed as whole rows, or else as
  /// parts. A range instead of two conditions: ptxas then sees that threads
  /// stay together, and uses uniform registers.
  Value hasRows(Value isWhole, Value count);
  /// Tokens of a part of `count` tokens: a multiple of a number, and at
  /// least 1.
  Value getPartSize(Value isWhole, Value count, int64_t multiple);
  /// Parts of `count` tokens, and at least 1. Numbers of tokens have 32 bits: a
  /// division of 64 bits is a call, after which ptxas puts nothing into
  /// uniform registers.
  Value getPartCount(Value count, Value size);
  /// Two values of one branch.
  using Pair = std::pair<Value, Value>;
  Pair selectPair(Value condition, function_ref<Pair()> then,
                  function_ref<Pair()> otherwise);

  /// Sums, or maxima, over `size` lanes of a warp that are `stride` apart.
  Value reduce(Value value, bool isMax, int64_t size, int64_t stride);

  AttentionOp op;
  Frame frame;
  OpBuilder &builder;
  Location loc;
  DeviceMath f;
  int64_t heads, group, keySize, valueSize;
  /// Elements of a key before those of `rope_cache`: all without it.
  int64_t contentSize;
  /// The head of the caches that is computed.
  Value head;
  WorkspaceShape shape;
  std::optional<Workspace> workspace;
  /// The number of slots of the workspace.
  Value slots;
  /// The schedule by which a block takes work, if there is one, and then the
  /// columns of sparse rows.
  std::optional<UnitSchedule> schedule;
  Value columns;
};

void expandForCPU(AttentionOp op, const Frame &frame);
void expandForGPU(AttentionOp op, const Frame &frame, const WarpPlan &plan);
/// Expands for the launch that merges the parts of rows. The maxima of parts
/// are lower than their largest scores by `bias`.
void expandMerge(AttentionOp op, const Frame &frame, const TilePlan &plan,
                 float bias);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_ATTENTION_H
