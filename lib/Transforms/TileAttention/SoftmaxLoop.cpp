//===- SoftmaxLoop.cpp - The loop of a block over its tiles ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxLoop.h"

using namespace mlir;
using namespace mlir::kvcache;

RowSums SoftmaxLoop::run(const SoftmaxState &first, Value tiles,
                         const ProductSteps &steps) const {
  SoftmaxState state =
      softmax.forTiles(first, tiles, block.getPlan().schedule,
                       [&](Value tile, SoftmaxState &state) {
                         feed.begin(tile);
                         Value token = block.getToken(tile);
                         feed.areLatent() ? addLatent(tile, token, steps, state)
                                          : addPair(tile, token, steps, state);
                         feed.end();
                       });
  return {state.acc, softmax.getReference(state), softmax.getTotal(state),
          bias};
}

void SoftmaxLoop::addScores(Value products, Value tile, Value token,
                            const ProductSteps &steps,
                            SoftmaxState &state) const {
  steps.beforeScores();
  steps.addScores(scores.apply(feed.scaleScores(products), tile, token), tile,
                  state);
}

void SoftmaxLoop::addPair(Value tile, Value token, const ProductSteps &steps,
                          SoftmaxState &state) const {
  SmallVector<Value> products = feed.useKeys(tile, type, [&](Value keyTile) {
    return SmallVector<Value>{steps.multiplyKeys(keyTile, tile)};
  });
  addScores(products.front(), tile, token, steps, state);
  SmallVector<Type> types;
  if (state.acc)
    types.push_back(state.acc.getType());
  SmallVector<Value> acc = feed.useValues(tile, types, [&](Value valueTile) {
    steps.addValues(valueTile, tile, state);
    return state.acc ? SmallVector<Value>{state.acc} : SmallVector<Value>();
  });
  if (state.acc)
    state.acc = acc.front();
}

void SoftmaxLoop::addLatent(Value tile, Value token, const ProductSteps &steps,
                            SoftmaxState &state) const {
  SmallVector<Value> before = state.getValues();
  state = SoftmaxState(
      feed.useKeys(tile, TypeRange(ValueRange(before)), [&](Value rows) {
        SoftmaxState next(before);
        addScores(steps.multiplyKeys(rows, tile), tile, token, steps, next);
        steps.addValues(rows, tile, next);
        return next.getValues();
      }));
}
