//===- BlockTokens.cpp - The tokens that rows of a block see --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockTokens.h"

#include "../PlanAttention/TileSizes.h"
#include "SeenRanges.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::kvcache;

std::optional<AdmittedTokens> BlockTokens::findAdmitted(const QueryRows &rows,
                                                        Value first,
                                                        Value last) const {
  if (first != last || !op.getMaskRegion())
    return visible.computeAdmitted(rows, first, last);
  SmallVector<Type> types(4, frame.builder.getIndexType());
  auto branch = scf::IfOp::create(frame.builder, frame.loc, types,
                                  frame.below(first, rows.count),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(frame.builder);
  auto yield = [&](const AdmittedTokens &tokens) {
    scf::YieldOp::create(frame.builder, frame.loc,
                         ValueRange{tokens.any.from, tokens.any.to,
                                    tokens.all.from, tokens.all.to});
  };
  frame.builder.setInsertionPointToStart(branch.thenBlock());
  yield(*visible.computeAdmitted(rows, first, first));
  frame.builder.setInsertionPointToStart(branch.elseBlock());
  TokenRange none{frame.index(0), frame.index(0)};
  yield({none, none});
  return AdmittedTokens{{branch.getResult(0), branch.getResult(1)},
                        {branch.getResult(2), branch.getResult(3)}};
}

SeenTokens BlockTokens::find(const QueryRows &rows, Value first, Value count,
                             Value lane) const {
  Value last = frame.sub(frame.add(first, count), frame.index(1));
  TokenRange firstSeen = visible.getByPosition(rows, first),
             lastSeen = visible.getByPosition(rows, last);
  SeenTokens seen{
      {firstSeen.from, lastSeen.to}, {lastSeen.from, firstSeen.to}, tileTokens};
  bool mayBegin = VisibleTokens::haveBegin(op);
  if (op.getRanges()) {
    AdmittedTokens hulls = SeenRanges(frame, op).computeHulls(
        frame.add(rows.first, first), count, lane);
    auto intersect = [&](TokenRange &seen, const TokenRange &hull) {
      seen = {frame.max(seen.from, hull.from), frame.min(seen.to, hull.to)};
    };
    intersect(seen.all, hulls.any);
    intersect(seen.byAll, hulls.all);
  }
  if (auto admitted =
          findAdmitted(rows, first, blockRows == 1 ? first : last)) {
    seen.all = {frame.max(seen.all.from, admitted->any.from),
                frame.min(seen.all.to, admitted->any.to)};
    seen.admitted = admitted->all;
    mayBegin = !matchPattern(seen.all.from, m_Zero());
  }
  if (!mayBegin)
    return seen;
  // A tile may begin before what rows see, but not in another page.
  seen.alignment = getTileAlignment(op, tileTokens);
  if (seen.alignment == 1)
    return seen;
  Value from = seen.all.from;
  seen.begin = from;
  seen.all.from = frame.sub(from, frame.rem(from, seen.alignment));
  // No tile if rows see no token, though one may begin before the end.
  if (op.getRanges() || op.getMaskRegion())
    seen.all.from = arith::SelectOp::create(frame.builder, frame.loc,
                                            frame.less(from, seen.all.to),
                                            seen.all.from, from);
  return seen;
}

Value BlockTokens::countSplits(const KeySplits &splits, const QueryRows &rows,
                               Value first) const {
  QueryRows seen = op.getRows()
                       ? getSparseRow(frame, op, frame.add(rows.first, first))
                       : loadRowsAndTokens(frame, op, rows.batch);
  Value count = frame.min(frame.sub(rows.count, first), frame.index(blockRows));
  TokenRange all = op.getRows() ? visible.get(seen, frame.index(0))
                                : find(seen, first, count).all;
  Value tokens = countTokens(frame, all);
  Value isWhole = arith::ConstantOp::create(frame.builder, frame.loc,
                                            frame.builder.getBoolAttr(false));
  return splits.getCount(tokens, splits.getSize(isWhole, tokens, tileTokens));
}

Value kvcache::countTokens(const IndexBuilder &b, const TokenRange &tokens) {
  return b.max(b.sub(tokens.to, tokens.from), b.index(0));
}
