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

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

constexpr int64_t kVectorBytes = 64;

/// Whether all elements that attention loads are exact in bf16.
static bool isExactInBF16(AttentionOp op, const TokenLoader &loader) {
  constexpr unsigned exactBits = 8;
  auto isExact = [&](Value operand) {
    if (!operand)
      return true;
    auto cache = dyn_cast<CacheTypeInterface>(operand.getType());
    if (cache && cache.isQuantized() && !loader.isUnscaled(operand))
      return false;
    Type element = cache ? cache.getElementType()
                         : getElementTypeOrSelf(operand.getType());
    return element.isBF16() || element.getIntOrFloatBitWidth() <= exactBits;
  };
  JoinedRows queries = getQueries(op);
  return isExact(queries.first) && isExact(queries.second) &&
         isExact(op.getKeyCache()) && isExact(op.getRopeCache()) &&
         isExact(op.getValueCache());
}

static HostMma chooseMma(AttentionOp op, const TokenLoader &loader,
                         HostMma widest) {
  AttentionSizes sizes(op);
  bool isAMX = widest == HostMma::AMX;
  int64_t keyStep = isAMX ? 2 * kLanes : 2, valueStep = isAMX ? kLanes : 1;
  bool isWhole = sizes.keySize % keyStep == 0 &&
                 getKeyLanes(op, kLanes) % 2 == 0 &&
                 sizes.valueSize % valueStep == 0;
  return isWhole && isExactInBF16(op, loader) ? widest : HostMma::FMA;
}

HostAttention::HostAttention(AttentionOp op, const Frame &frame)
    : op(op), frame(frame), f(frame), sizes(op), visible(frame, op),
      scores(frame, op), normalizer(frame, RowOperands::get(op)),
      loader(frame, op), factor(scores.getFactor()),
      mma(chooseMma(op, loader, frame.target.mma)) {}

int64_t kvcache::getKeyBorder(AttentionOp op) {
  AttentionSizes sizes(op);
  int64_t own = cast<MemRefType>(op.getQ().getType()).getDimSize(2);
  return std::gcd(std::gcd(own, sizes.keySize), sizes.contentSize);
}

int64_t kvcache::getKeyLanes(AttentionOp op, int64_t most) {
  return getLanes(op.getKeyCache(), getKeyBorder(op), most);
}

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
  // Powers are at least 2^-126, also that of -inf. So scores that are all -inf
  // have a sum, which counts only if it is NaN.
  Value isLowest =
      arith::CmpFOp::create(frame.builder, frame.loc, arith::CmpFPredicate::OEQ,
                            rowMax, f.constant(kLowest));
  rowSum = f.mul(rowSum, f.select(isLowest, f.constant(0), f.constant(1)));
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
