//===- RoleSoftmax.cpp - The softmax of one of two query tiles ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleSoftmax.h"

#include "../PlanAttention/ExponentBias.h"
#include "FragmentResults.h"
#include "PersistentScheduler.h"

#include "kvcache/Support/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

/// Columns of the accumulator that a thread has in registers at once, at most.
constexpr int64_t kColumns = 32;

RoleSoftmax::RoleSoftmax(const TileRows &block, FragmentBuilder &b,
                         const RoleTensors &tensors, Value tiles, Value number,
                         Value lane)
    : block(block), frame(block.getFrame()), b(b), tensors(tensors),
      tiles(tiles),
      number(frame.fromI32(unifyLanes(frame, frame.toI32(number)))), lane(lane),
      firstRow(frame.mul(this->number, RoleTensors::kRowsOfTile)),
      scores(block, b, getFragment(*block.getConfig().keys), firstRow),
      softmax(b, DeviceMath(frame), scores.getFactor(),
              getExponentBias(block.getOp(), block.getConfig()),
              /*scratch=*/Value(), /*hasPolynomials=*/true) {}

FragmentType RoleSoftmax::getFragment(int64_t columns) const {
  return FragmentType::get(
      frame.builder.getContext(), {RoleTensors::kRowsOfTile, columns},
      frame.builder.getF32Type(), FragmentLayout::TmemRow, /*partial=*/false);
}

void RoleSoftmax::emit() const {
  storeRows(softmax.forTiles(
      softmax.beginRows(scores.getType()), tiles, Schedule::Roles,
      [&](Value tile, SoftmaxState &state) { addTile(tile, state); }));
}

void RoleSoftmax::addTile(Value tile, SoftmaxState &state) const {
  Value zero = frame.index(0);
  tensors.wait(RoleEdge::Scores, number, tile);
  Value products =
      TmemLoadOp::create(frame.builder, frame.loc, scores.getType(),
                         tensors.getScores(number), zero, /*half=*/Value());
  LazyProbs added = softmax.addScoresLazily(
      scores.apply(products, tile, block.getToken(tile)),
      getExponentSlack(block.getOp()), state);
  TypedValue<TmemTileType> probs = tensors.getProbs(number);
  Value rounded = b.truncate(added.probs,
                             cast<FloatType>(probs.getType().getElementType()));
  TmemStoreOp::create(frame.builder, frame.loc, rounded, probs, zero,
                      /*half=*/Value());
  rescale(added, tile);
  tensors.arrive(RoleEdge::Probs, number, lane);
}

void RoleSoftmax::rescale(const LazyProbs &added, Value tile) const {
  Value grows = WarpAnyOp::create(frame.builder, frame.loc, added.grows);
  Value isScaled = arith::AndIOp::create(frame.builder, frame.loc, grows,
                                         frame.below(frame.index(0), tile));
  frame.runIf(isScaled, [&] {
    TypedValue<TmemTileType> acc = tensors.getAcc(number);
    int64_t count = std::gcd(acc.getType().getColumns(), kColumns);
    forColumns(count, [&](Value column) {
      Value before =
          TmemLoadOp::create(frame.builder, frame.loc, getFragment(count), acc,
                             column, /*half=*/Value());
      TmemStoreOp::create(frame.builder, frame.loc,
                          b.multiply(before, added.rescale), acc, column,
                          /*half=*/Value());
    });
  });
}

void RoleSoftmax::storeRows(const SoftmaxState &state) const {
  RowStates states{{},
                   softmax.getReference(state),
                   softmax.getRowSum(state),
                   getExponentBias(block.getOp(), block.getConfig())};
  Value hasSums = frame.below(frame.index(0), tiles);
  frame.runIf(hasSums, [&] {
    tensors.wait(RoleEdge::Acc, number, /*use=*/frame.index(0));
  });
  TypedValue<TmemTileType> acc = tensors.getAcc(number);
  int64_t count = std::gcd(acc.getType().getColumns(), kColumns);
  FragmentType type = getFragment(count);
  forColumns(count, [&](Value column) {
    states.accs = {frame.selectIf(
        hasSums,
        [&]() -> Value {
          return TmemLoadOp::create(frame.builder, frame.loc, type, acc, column,
                                    /*half=*/Value());
        },
        [&] { return b.splat(type, DeviceMath(frame).constant(0)); })};
    FragmentResults(block, b, firstRow, column).storeOutputs(states);
  });
}

// Not unrolled, because an iteration waits for its accesses.
void RoleSoftmax::forColumns(int64_t count,
                             function_ref<void(Value column)> body) const {
  auto loop = scf::ForOp::create(frame.builder, frame.loc, frame.index(0),
                                 frame.index(block.getSizes().valueSize),
                                 frame.index(count));
  disableUnrolling(loop);
  OpBuilder::InsertionGuard guard(frame.builder);
  frame.builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}
