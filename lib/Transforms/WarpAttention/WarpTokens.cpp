//===- WarpTokens.cpp - Tokens that lanes of a warp load ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpTokens.h"

#include "../Attention/MaskBounds.h"
#include "kvcache/Support/CachePolicy.h"

using namespace mlir;
using namespace mlir::kvcache;

WarpToken WarpTokens::load(const QueryRows &rows, Value i, Value number,
                           Value end) const {
  TokenLoader loader(frame, op);
  WarpToken token;
  token.isSeen = frame.less(number, end);
  // After the last token, the last is read again.
  number = frame.min(number, frame.sub(end, frame.index(1)));
  token.number = number;
  Value id;
  auto restrict = [&](Value condition) {
    token.isSeen = arith::AndIOp::create(frame.builder, frame.loc, token.isSeen,
                                         condition);
  };
  if (op.getRows()) {
    Value given = loader.loadId(rows, lanes.head, number);
    id = frame.max(given, frame.index(0));
    restrict(frame.equal(given, id));
  }
  if (op.getMask())
    restrict(VisibleTokens(frame, op).isUnmasked(rows, i, number));
  if (ranges.hasGaps())
    restrict(isAnyInRanges(rows, i, number, 1));
  loadPieces(loader.getPlace(rows, number, id), token);
  return token;
}

void WarpTokens::loadPieces(const Place &place, WarpToken &token) const {
  auto load = [&](Value cache, int64_t pieces, int64_t width, Value &scale) {
    SmallVector<Value> values;
    for (int64_t p = 0; p < pieces; ++p)
      values.push_back(loadPiece(cache, place, p, width));
    if (TokenLoader(frame, op).isUnscaled(cache))
      scale = loadTokenScale(frame, cache, place, lanes.head);
    return values;
  };
  token.key = load(op.getKeyCache(), lanes.keyPieces, lanes.sizes.keyWidth,
                   token.keyScale);
  if (op.getValueCache()) {
    token.value = load(op.getValueCache(), lanes.valuePieces,
                       lanes.sizes.valueWidth, token.valueScale);
  } else {
    token.value.append(token.key.begin(),
                       token.key.begin() + lanes.valuePieces);
    token.valueScale = token.keyScale;
  }
}

Value WarpTokens::loadPiece(Value cache, const Place &place, int64_t piece,
                            int64_t width) const {
  Value d = lanes.getElement(frame, piece, width);
  auto load = [&](Value from, Value element) {
    return TokenLoader(frame, op).load(from, place, lanes.head, element, width,
                                       frame.builder.getF32Type(),
                                       isStreamed(lanes.hint));
  };
  int64_t contentSize = AttentionSizes(op).contentSize;
  int64_t first = piece * lanes.sizes.lanes * width;
  if (!op.getRopeCache() || first + lanes.sizes.lanes * width <= contentSize)
    return load(cache, d);
  Value border = frame.index(contentSize);
  auto loadRope = [&] { return load(op.getRopeCache(), frame.sub(d, border)); };
  if (first >= contentSize)
    return loadRope();
  return frame.selectIf(
      frame.below(d, border), [&] { return load(cache, d); }, loadRope);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

Value WarpTokens::isAnySeen(const QueryRows &rows, Value i, Value first,
                            int64_t count) const {
  Value isAny;
  if (op.getMaskRegion())
    isAny = isAnyAdmitted(rows, i, first, count);
  if (!ranges.hasGaps())
    return isAny;
  Value isInRange = isAnyInRanges(rows, i, first, count);
  return isAny ? Value(arith::AndIOp::create(frame.builder, frame.loc, isAny,
                                             isInRange))
               : isInRange;
}

Value WarpTokens::isAnyInRanges(const QueryRows &rows, Value i, Value first,
                                int64_t count) const {
  TokenRange tokens{first, frame.add(first, frame.index(count))};
  return ranges.computePairs(frame.add(rows.first, i), tokens).any;
}

Value WarpTokens::isAnyAdmitted(const QueryRows &rows, Value i, Value first,
                                int64_t count) const {
  Value query = getQueryPosition(frame, op, rows, i);
  int64_t heads = lanes.sizes.rows;
  Value lastHead =
      heads == 1 ? lanes.firstHead : lanes.getQueryHead(frame, heads - 1);
  RowBox box{
      rows.batch, {lanes.firstHead, lastHead}, {query, query}, rows.tokens};
  Value last = frame.add(first, frame.index(count - 1));
  return computePairs(frame, *op.getMaskRegion(), box, {first, last}).any;
}
