//===- HostAttention.cpp - Operands of attention on a CPU -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostAttention.h"

#include "../Attention/SeenRanges.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

constexpr int64_t kVectorBytes = 64;

HostAttention::HostAttention(AttentionOp op, const Frame &frame)
    : op(op), frame(frame), f(frame), sizes(op), visible(frame, op),
      scores(frame, op), normalizer(frame, RowOperands::get(op)),
      loader(frame, op), factor(scores.getFactor()) {}

HostAttention::Row HostAttention::getRow(const QueryRows &rows, Value head,
                                         Value number) const {
  Value i = frame.div(number, sizes.group);
  Value first = frame.mul(head, sizes.group);
  return {i, frame.add(rows.first, i),
          frame.add(first, frame.rem(number, sizes.group))};
}

void HostAttention::check(const Row &row) const {
  checkRow(frame, op, row.row);
}

Value HostAttention::getFactor(const Row &row, Value head) const {
  return scores.getFactor(factor, head, row.queryHead);
}

Value HostAttention::end(const Row &row, Value head, Value rowMax,
                         Value rowSum) const {
  RowState scores{rowMax, rowSum, f.constant(1)};
  RowState all = normalizer.addSink(scores, row.queryHead);
  normalizer.storeStatistics(scores, all, /*bias=*/0, row.row, row.queryHead);
  return normalizer.getQuotient(all, head, row.queryHead);
}

Value HostAttention::changesAny(Value factors) const {
  Value areOther =
      arith::CmpFOp::create(frame.builder, frame.loc, arith::CmpFPredicate::UNE,
                            factors, f.constant(factors, 1));
  return vector::ReductionOp::create(frame.builder, frame.loc,
                                     vector::CombiningKind::OR, areOther);
}

TokenRange HostAttention::getSeen(const QueryRows &rows, Value first,
                                  Value last) const {
  TokenRange seen{visible.getByPosition(rows, first).from,
                  visible.getByPosition(rows, last).to};
  if (op.getRanges()) {
    Value count = frame.sub(frame.add(last, frame.index(1)), first);
    TokenRange hull = SeenRanges(frame, op)
                          .computeHulls(frame.add(rows.first, first), count,
                                        /*lane=*/Value())
                          .any;
    seen = {frame.max(seen.from, hull.from), frame.min(seen.to, hull.to)};
  }
  return visible.restrict(rows, first, last, seen);
}

Value HostAttention::allocate(ArrayRef<int64_t> shape, Type element) const {
  OpBuilder &builder = frame.builder;
  OpBuilder::InsertionGuard guard(builder);
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    builder.setInsertionPointToStart(&function.getFunctionBody().front());
  return memref::AllocaOp::create(builder, frame.loc,
                                  MemRefType::get(shape, element),
                                  builder.getI64IntegerAttr(kVectorBytes));
}
