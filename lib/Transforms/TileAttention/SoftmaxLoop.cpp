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

RowStates SoftmaxLoop::run(const SoftmaxState &first, Value tiles,
                           const ProductSteps &steps) const {
  SoftmaxState state =
      softmax.forTiles(first, tiles, *block.getConfig().schedule,
                       [&](Value tile, SoftmaxState &state) {
                         source.begin(tile);
                         Value token = block.getToken(tile);
                         source.areLatent()
                             ? addLatent(tile, token, steps, state)
                             : addPair(tile, token, steps, state);
                         source.end();
                       });
  return {state.products, softmax.getReference(state), softmax.getRowSum(state),
          bias};
}

Value SoftmaxLoop::addScores(Value products, Value tile, Value token,
                             const ProductSteps &steps,
                             SoftmaxState &state) const {
  steps.beforeScores();
  return steps.addScores(
      scores.apply(source.scaleScores(products), tile, token), tile, state);
}

void SoftmaxLoop::addPair(Value tile, Value token, const ProductSteps &steps,
                          SoftmaxState &state) const {
  ProductSteps::Store storeNext = steps.loadNext(tile);
  SmallVector<Value> products =
      source.useKeys(tile, scores.getType(), [&](Value keyTile) {
        return SmallVector<Value>{steps.multiplyKeys(keyTile, tile)};
      });
  Value probs = addScores(products.front(), tile, token, steps, state);
  storeNext(state);
  state.products = source.useValues(
      tile, TypeRange(ValueRange(state.products)), [&](Value valueTile) {
        steps.addValues(probs, valueTile, tile, state);
        return state.products;
      });
}

void SoftmaxLoop::addLatent(Value tile, Value token, const ProductSteps &steps,
                            SoftmaxState &state) const {
  ProductSteps::Store storeNext = steps.loadNext(tile);
  SmallVector<Value> before = state.getValues();
  state = SoftmaxState(
      source.useKeys(tile, TypeRange(ValueRange(before)), [&](Value rows) {
        SoftmaxState next(before);
        Value probs =
            addScores(steps.multiplyKeys(rows, tile), tile, token, steps, next);
        steps.addValues(probs, rows, tile, next);
        return next.getValues();
      }));
  storeNext(state);
}
