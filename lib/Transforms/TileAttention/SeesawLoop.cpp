//===- SeesawLoop.cpp - The tiles of two warpgroups in turns --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeesawLoop.h"

#include "TilePipe.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Computes other values in place of these if a condition holds.
static SmallVector<Value>
replaceIf(const Frame &frame, Value condition, ValueRange values,
          function_ref<SmallVector<Value>(ValueRange)> compute) {
  auto branch =
      scf::IfOp::create(frame.builder, frame.loc, values.getTypes(), condition,
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(frame.builder);
  frame.builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(frame.builder, frame.loc, compute(values));
  frame.builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(frame.builder, frame.loc, values);
  return SmallVector<Value>(branch.getResults());
}

RowStates SeesawLoop::run(Value count) const {
  Value group = exchange.getGroup(), zero = frame.index(0);
  auto both = [&](Value lhs, Value rhs) -> Value {
    return arith::AndIOp::create(frame.builder, frame.loc, lhs, rhs);
  };
  Value hasTiles = frame.below(zero, count);
  SmallVector<Value> carried =
      replaceIf(frame, both(frame.equal(group, zero), hasTiles),
                softmax.begin(types.acc).getValues(), [&](ValueRange values) {
                  return addOwn(zero, /*isFirst=*/true, values);
                });
  // Warpgroup 0 has added its first tile.
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, frame.sub(frame.index(2), group), count,
      frame.index(2), carried,
      [&](OpBuilder &, Location, Value number, ValueRange values) {
        Value tile = frame.fromI32(unifyLanes(frame, frame.toI32(number)));
        SmallVector<Value> added;
        b.keepThread([&] {
          b.recomputePlaces();
          added = addOwn(tile, /*isFirst=*/false, values);
        });
        scf::YieldOp::create(frame.builder, frame.loc, added);
      });
  Value isLastOther = frame.equal(frame.rem(frame.add(count, group), 2), zero);
  SoftmaxState state(replaceIf(frame, both(hasTiles, isLastOther),
                               loop.getResults(), [&](ValueRange values) {
                                 SoftmaxState last(values);
                                 Value tile = frame.sub(count, frame.index(1));
                                 freeUnread(tile);
                                 addOther(tile, last, {}, [](SoftmaxState &) {
                                   return SmallVector<Value>();
                                 });
                                 return last.getValues();
                               }));
  return {state.products, softmax.getReference(state), joinSums(state), bias};
}

Value SeesawLoop::joinSums(const SoftmaxState &state) const {
  Value sum = softmax.getRowSum(state);
  exchange.store(GroupExchange::Sum, sum);
  gpu::BarrierOp::create(frame.builder, frame.loc);
  Value other =
      exchange.load(GroupExchange::Sum, cast<FragmentType>(sum.getType()));
  return b.map({sum, other}, [&](ValueRange sums) -> Value {
    return arith::AddFOp::create(frame.builder, frame.loc, sums[0], sums[1]);
  });
}

//===----------------------------------------------------------------------===//
// A tile of the warpgroup's own
//===----------------------------------------------------------------------===//

SmallVector<Value> SeesawLoop::addOwn(Value tile, bool isFirst,
                                      ValueRange carried) const {
  Value group = exchange.getGroup(), one = frame.index(1);
  SmallVector<Type> stateTypes(carried.getTypes());
  if (!isFirst)
    freeUnread(frame.sub(tile, one));
  SmallVector<Value> added = tiles.useHalf(
      b, tile, group, stateTypes, [&](Value half) -> SmallVector<Value> {
        Value started =
            startKeys(half, tiles.getFirstColumn(group), /*acc=*/Value());
        if (!isFirst)
          frame.runIf(
              frame.below(frame.index(*block.getConfig().stages - 1), tile),
              [&] {
                tiles.copyRope(tile);
                tiles.copyHalf(tile, exchange.getOther());
              });
        SmallVector<Type> withProbs(stateTypes);
        withProbs.push_back(types.probs);
        SmallVector<Value> values =
            tiles.useRope(b, tile, withProbs, [&](Value rope) {
              SoftmaxState state(carried);
              Value tileScores = finishScores(tile, rope, started);
              Value probs = addScores(tile, tileScores, rope, isFirst, state);
              SmallVector<Value> found = state.getValues();
              found.push_back(probs);
              return found;
            });
        Value probs = values.pop_back_val();
        SoftmaxState state(values);
        Value product = b.startProduct(types.acc, probs, half, frame.index(0),
                                       state.getAcc(), Major::MN);
        if (!isFirst)
          tiles.copyAll(frame.add(tile, one));
        state.getAcc() = b.wait(product);
        return state.getValues();
      });
  tiles.copyHalf(frame.add(tile, frame.index(*block.getConfig().stages)),
                 group);
  return added;
}

Value SeesawLoop::startKeys(Value part, Value firstColumn, Value acc) const {
  int64_t columns = cast<TileType>(part.getType()).getColumns();
  return b.startTiles(types.score, queryTile, /*row=*/frame.index(0),
                      firstColumn, part, columns, acc);
}

Value SeesawLoop::finishScores(Value tile, Value rope, Value started) const {
  Value more =
      startKeys(rope, frame.index(block.getSizes().valueSize), started);
  Value other = exchange.getOther();
  SmallVector<Value> products = tiles.useHalf(
      b, tile, other, types.score, [&](Value half) -> SmallVector<Value> {
        return {b.wait(startKeys(half, tiles.getFirstColumn(other), more))};
      });
  return scores.apply(products.front(), tile, block.getToken(tile));
}

Value SeesawLoop::addScores(Value tile, Value tileScores, Value rope,
                            bool isFirst, SoftmaxState &state) const {
  auto add = [&](SoftmaxState &current) -> SmallVector<Value> {
    TileProbs found = softmax.addRows(tileScores, current);
    return {giveProbs(found.probs, rope, current), found.rescale};
  };
  SmallVector<Value> found;
  if (isFirst) {
    // All threads of the warpgroup have read the rope.
    exchange.syncGroup();
    found = add(state);
  } else {
    found = addOther(frame.sub(tile, frame.index(1)), state,
                     {types.probs, state.rowMax.getType()}, add);
  }
  state.getAcc() = b.multiply(state.getAcc(), found[1]);
  return found[0];
}

Value SeesawLoop::giveProbs(Value probs, Value rope,
                            const SoftmaxState &state) const {
  Value operand = b.toOperand(types.probs, probs);
  Value zero = frame.index(0);
  FragmentStoreOp::create(frame.builder, frame.loc, operand, rope, zero, zero,
                          b.getThread(), /*transposed=*/false);
  exchange.store(GroupExchange::Max, state.rowMax);
  emitAsyncFence(frame);
  exchange.giveTurn();
  return operand;
}

//===----------------------------------------------------------------------===//
// A tile of the other warpgroup
//===----------------------------------------------------------------------===//

void SeesawLoop::freeUnread(Value tile) const {
  tiles.useHalf(b, tile, exchange.getOther(), {},
                [](Value) { return SmallVector<Value>(); });
}

SmallVector<Value> SeesawLoop::addOther(Value tile, SoftmaxState &state,
                                        TypeRange moreTypes,
                                        Meanwhile meanwhile) const {
  exchange.takeTurn();
  auto rows = cast<FragmentType>(state.rowMax.getType());
  Value rescale =
      softmax.raiseMax(exchange.load(GroupExchange::Max, rows), state);
  state.getAcc() = b.multiply(state.getAcc(), rescale);
  Value zero = frame.index(0);
  SmallVector<Value> before = state.getValues();
  SmallVector<Type> all(ValueRange(before).getTypes());
  llvm::append_range(all, moreTypes);
  SmallVector<Value> values = tiles.useRope(b, tile, all, [&](Value probs) {
    return tiles.useHalf(b, tile, exchange.getGroup(), all, [&](Value half) {
      SoftmaxState next(before);
      Value product = b.startTiles(types.acc, probs, zero, zero, half,
                                   types.probs.getColumns(), next.getAcc(),
                                   Major::K, Major::MN);
      // ptxas would compute the probs before the product starts.
      ScheduleFenceOp::create(frame.builder, frame.loc, next.rowSum);
      SmallVector<Value> found = meanwhile(next);
      next.getAcc() = b.wait(product);
      SmallVector<Value> yielded = next.getValues();
      llvm::append_range(yielded, found);
      return yielded;
    });
  });
  state = SoftmaxState(ArrayRef(values).take_front(before.size()));
  return SmallVector<Value>(ArrayRef(values).drop_front(before.size()));
}
