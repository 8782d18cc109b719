//===- QueryRows.h - Rows of queries, and their tokens ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_ATTENTION_QUERYROWS_H
#define KVCACHE_LIB_TRANSFORMS_ATTENTION_QUERYROWS_H

#include "../Builders/Heads.h"
#include "kvcache/IR/AttentionOps.h"

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

/// Loads the rows of a sequence; the first function loads no tokens.
QueryRows loadRows(const Frame &frame, AttentionOp op, Value batch);
QueryRows loadRowsAndTokens(const Frame &frame, AttentionOp op, Value batch);
/// Returns a sparse row. `columns` are those of `rows`, if they are known.
QueryRows getSparseRow(const Frame &frame, AttentionOp op, Value row,
                       Value columns = {});

/// The columns of the slots `ids` that sparse rows see.
Value countIds(const Frame &frame, Value ids);
/// Whether each head of the cache has slots of its own.
bool haveHeads(Value ids);
/// The index of an encoded row. `head` may be null without heads.
SmallVector<Value> getIdPlace(Value ids, Value row, Value head, Value column);

/// With checks, the arrays of the op have this row.
void checkRow(const Frame &frame, AttentionOp op, Value row);

/// The position of row `first + i` in its sequence, as the regions take it: 0
/// for a row before all tokens, which `lengths` may have.
Value getQueryPosition(const Frame &frame, AttentionOp op,
                       const QueryRows &rows, Value i);

/// The elements of queries, in one array or two.
inline JoinedRows getQueries(AttentionOp op) {
  return {op.getQ(), op.getQRope()};
}

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_ATTENTION_QUERYROWS_H
