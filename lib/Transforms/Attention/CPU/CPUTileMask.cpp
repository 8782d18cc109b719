//===- CPUTileMask.cpp - The tokens of a tile that a row sees -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileMask.h"

#include "../MaskBounds.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

Value CPUTileMask::splat(Value index) const {
  auto type = VectorType::get(kTileTokens, frame.builder.getIndexType());
  return vector::BroadcastOp::create(frame.builder, frame.loc, type, index);
}

Value CPUTileMask::compare(arith::CmpIPredicate predicate, Value tokens,
                           Value index) const {
  return arith::CmpIOp::create(frame.builder, frame.loc, predicate, tokens,
                               splat(index));
}

Value CPUTileMask::both(Value lhs, Value rhs) const {
  return arith::AndIOp::create(frame.builder, frame.loc, lhs, rhs);
}

TokenRange CPUTileMask::getSeenByRows(const QueryRows &rows, Value first,
                                      Value last) const {
  TokenRange seen{visible.getByPosition(rows, first).from,
                  visible.getByPosition(rows, last).to};
  if (op.getRanges()) {
    Value count = frame.sub(frame.add(last, frame.index(1)), first);
    TokenRange hull = ranges
                          .computeHulls(frame.add(rows.first, first), count,
                                        /*lane=*/Value())
                          .any;
    seen = {frame.max(seen.from, hull.from), frame.min(seen.to, hull.to)};
  }
  return visible.restrict(rows, first, last, seen);
}

Value CPUTileMask::isAnySeen(const QueryRows &rows, const CPURow &row,
                             Value tile, const TokenRange &seen) const {
  Value end = frame.add(tile, frame.index(kTileTokens));
  Value isAny = both(frame.less(tile, seen.to), frame.less(seen.from, end));
  if (op.getMaskRegion())
    isAny = both(isAny, isAnyAdmitted(rows, row, tile));
  if (ranges.hasGaps())
    isAny = both(isAny, ranges.computePairs(row.row, {tile, end}).any);
  return isAny;
}

Value CPUTileMask::isAnyAdmitted(const QueryRows &rows, const CPURow &row,
                                 Value tile) const {
  Value query = getQueryPosition(frame, op, rows, row.i);
  Value lastHead =
      shape.together == 1
          ? row.queryHead
          : frame.add(row.queryHead, frame.index(shape.together - 1));
  RowBox box{
      rows.batch, {row.queryHead, lastHead}, {query, query}, rows.tokens};
  Value last = frame.add(tile, frame.index(kTileTokens - 1));
  return computePairs(frame, *op.getMaskRegion(), box, {tile, last}).any;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

Value CPUTileMask::getTokens(Value tile) const {
  auto steps = llvm::to_vector(llvm::seq<int64_t>(0, kTileTokens));
  Value step = arith::ConstantOp::create(
      frame.builder, frame.loc, frame.builder.getIndexVectorAttr(steps));
  return arith::AddIOp::create(frame.builder, frame.loc, splat(tile), step);
}

Value CPUTileMask::getFlags(const QueryRows &rows, const CPURow &row,
                            Value tile, const TokenRange &seen,
                            Value areGiven) const {
  Value tokens = getTokens(tile);
  Value isAfter = compare(arith::CmpIPredicate::sge, tokens, seen.from);
  Value flags =
      both(isAfter, compare(arith::CmpIPredicate::slt, tokens, seen.to));
  if (areGiven)
    flags = both(flags, areGiven);
  if (op.getMask())
    flags = both(
        flags, getUnmasked(rows, row, tile, cast<VectorType>(flags.getType())));
  return ranges.hasGaps() ? maskGaps(row, tokens, flags) : flags;
}

Value CPUTileMask::maskGaps(const CPURow &row, Value tokens,
                            Value flags) const {
  auto maskGap = [&](Value number, ValueRange carried) -> SmallVector<Value> {
    TokenRange gap = ranges.getGap(row.row, number);
    Value isBefore = compare(arith::CmpIPredicate::slt, tokens, gap.from);
    Value isSeen = arith::OrIOp::create(
        frame.builder, frame.loc, isBefore,
        compare(arith::CmpIPredicate::sge, tokens, gap.to));
    return {both(carried.front(), isSeen)};
  };
  return ranges.forGaps(flags, maskGap).front();
}

Value CPUTileMask::getUnmasked(const QueryRows &rows, const CPURow &row,
                               Value tile, VectorType type) const {
  Value end = frame.add(tile, frame.index(kTileTokens));
  auto allCached = [&]() -> Value {
    return arith::ConstantOp::create(frame.builder, frame.loc,
                                     DenseElementsAttr::get(type, true));
  };
  auto loadFlags = [&]() -> Value {
    SmallVector<Value> flags;
    for (int64_t j = 0; j < kTileTokens; ++j)
      flags.push_back(
          visible.isUnmasked(rows, row.i, frame.add(tile, frame.index(j))));
    return vector::FromElementsOp::create(frame.builder, frame.loc, type,
                                          flags);
  };
  if (op.getWholeMask())
    return loadFlags();
  return frame.selectIf(frame.less(rows.own, end), loadFlags, allCached);
}
