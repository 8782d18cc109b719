//===- QueryRows.cpp - Rows of queries, and their tokens ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryRows.h"

#include "SeenRanges.h"

#include "kvcache/IR/QueryOps.h"

using namespace mlir;
using namespace mlir::kvcache;

QueryRows kvcache::loadRows(const Frame &frame, AttentionOp op, Value batch) {
  Value first = frame.loadNumber(op.getRowOffsets(), batch);
  Value next =
      frame.loadNumber(op.getRowOffsets(), frame.add(batch, frame.index(1)));
  return {batch, first, frame.sub(next, first), Value(), Value()};
}

QueryRows kvcache::loadRowsAndTokens(const Frame &frame, AttentionOp op,
                                     Value batch) {
  QueryRows rows = loadRows(frame, op, batch);
  if (op.getLengths()) {
    frame.checkFirst(batch, "sequence", {{"lengths", op.getLengths()}});
    rows.tokens = frame.loadNumber(op.getLengths(), batch);
    rows.own = frame.sub(rows.tokens, rows.count);
  } else {
    rows.own = CacheLengthOp::create(frame.builder, frame.loc, op.getKeyCache(),
                                     batch);
    rows.tokens = frame.add(rows.own, rows.count);
  }
  return rows;
}

QueryRows kvcache::getSparseRow(const Frame &frame, AttentionOp op, Value row,
                                Value columns) {
  return {Value(), row, frame.index(1),
          columns ? columns : countIds(frame, op.getRows()), frame.index(0)};
}

Value kvcache::countIds(const Frame &frame, Value ids) {
  return frame.dim(ids, cast<MemRefType>(ids.getType()).getRank() - 1);
}

bool kvcache::haveHeads(Value ids) {
  return cast<MemRefType>(ids.getType()).getRank() == 3;
}

SmallVector<Value> kvcache::getIdPlace(Value ids, Value row, Value head,
                                       Value column) {
  if (haveHeads(ids))
    return {row, head, column};
  return {row, column};
}

void kvcache::checkRow(const Frame &frame, AttentionOp op, Value row) {
  frame.checkFirst(row, "row",
                   {{"q", op.getQ()},
                    {"q_rope", op.getQRope()},
                    {"out", op.getOut()},
                    {"mask", op.getMask()},
                    {"rows", op.getRows()},
                    {"ranges", op.getRanges()}});
  SeenRanges(frame, op).check(row);
}

Value kvcache::getQueryPosition(const Frame &frame, AttentionOp op,
                                const QueryRows &rows, Value i) {
  Value position = frame.add(rows.own, i);
  return op.getLengths() ? frame.max(position, frame.index(0)) : position;
}
