//===- VisibleTokens.cpp - The tokens that rows see -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisibleTokens.h"

#include "MaskBounds.h"
#include "SeenRanges.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::kvcache;

TokenRange VisibleTokens::get(const QueryRows &rows, Value i) const {
  TokenRange seen = getByPosition(rows, i);
  if (!op.getRanges())
    return seen;
  TokenRange hull = SeenRanges(frame, op).getHull(frame.add(rows.first, i));
  // Not negative, because differences of ends and tokens have 32 bits.
  Value end = frame.max(frame.min(seen.to, hull.to), frame.index(0));
  return {frame.max(seen.from, hull.from), end};
}

TokenRange VisibleTokens::getByPosition(const QueryRows &rows, Value i) const {
  Value own = frame.add(rows.own, i);
  Value end = frame.add(own, frame.index(1));
  TokenRange seen{frame.index(0), op.getCausal() ? end : rows.tokens};
  if (std::optional<uint64_t> chunk = op.getChunk()) {
    // As if it were unsigned: a row before all tokens sees none.
    Value begin = frame.sub(own, frame.rem(own, frame.index(*chunk)));
    seen.from = frame.max(begin, seen.from);
    if (!op.getCausal()) {
      seen.to = frame.min(frame.add(begin, frame.index(*chunk)), seen.to);
      if (op.getLengths())
        seen.to = arith::SelectOp::create(frame.builder, frame.loc,
                                          frame.less(own, frame.index(0)),
                                          frame.index(0), seen.to);
    }
  }
  if (std::optional<uint64_t> window = op.getWindow()) {
    // Numbers of tokens have 31 bits: a larger window is as large.
    int64_t size = std::min(*window, uint64_t(1) << 32);
    seen.from = frame.max(frame.sub(end, frame.index(size)), seen.from);
  }
  return seen;
}

Value VisibleTokens::isUnmasked(const QueryRows &rows, Value i,
                                Value token) const {
  OpBuilder &builder = frame.builder;
  // The word of a cached token is past the end, like that of a token without
  // a bit, unless all tokens have bits.
  Value bit = op.getWholeMask() ? token : frame.sub(token, rows.own);
  Value word = frame.div(bit, 32);
  return frame.selectIf(
      frame.below(word, frame.dim(op.getMask(), 1)),
      [&]() -> Value {
        Value bits =
            memref::LoadOp::create(builder, frame.loc, op.getMask(),
                                   ValueRange{frame.add(rows.first, i), word});
        Value shift = frame.toI32(frame.rem(bit, 32));
        bits = arith::ShRUIOp::create(builder, frame.loc, bits, shift);
        return arith::TruncIOp::create(builder, frame.loc, builder.getI1Type(),
                                       bits);
      },
      [&]() -> Value {
        if (op.getWholeMask())
          return arith::ConstantOp::create(builder, frame.loc,
                                           builder.getBoolAttr(false));
        return frame.less(bit, frame.index(0));
      });
}

std::optional<AdmittedTokens>
VisibleTokens::computeAdmitted(const QueryRows &rows, Value first,
                               Value last) const {
  Region *mask = op.getMaskRegion();
  if (!mask)
    return std::nullopt;
  int64_t heads = cast<MemRefType>(op.getQ().getType()).getDimSize(1);
  Value firstHead = frame.index(0);
  Value lastHead = heads == 1 ? firstHead : frame.index(heads - 1);
  Value lo = getQueryPosition(frame, op, rows, first);
  Value hi = first == last ? lo : getQueryPosition(frame, op, rows, last);
  return computeTokens(
      frame, *mask, {rows.batch, {firstHead, lastHead}, {lo, hi}, rows.tokens});
}

TokenRange VisibleTokens::restrict(const QueryRows &rows, Value first,
                                   Value last, const TokenRange &seen) const {
  std::optional<AdmittedTokens> admitted = computeAdmitted(rows, first, last);
  if (!admitted)
    return seen;
  return {frame.max(seen.from, admitted->any.from),
          frame.min(seen.to, admitted->any.to)};
}
