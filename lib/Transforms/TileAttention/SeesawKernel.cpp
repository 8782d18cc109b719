//===- SeesawKernel.cpp - Latent attention of two warpgroups --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeesawKernel.h"

#include "../PlanAttention/ExponentBias.h"
#include "ProductTeam.h"
#include "SeesawLoop.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// A block computes 64 query rows of a latent cache: the heads of a token, or
/// some. Both warpgroups have all rows, and a half of the values each.
class SeesawKernel {
public:
  SeesawKernel(AttentionOp op, const Frame &frame,
               const AttentionConfig &config)
      : frame(frame), kernel(op, frame, config), block(kernel),
        b(frame.builder, frame.loc), items(kernel, block), tiles(block, items),
        queries(block, tiles.getElement(), countThreads(config)) {}

  void emit() {
    items.emit(countThreads(block.getConfig()),
               {[&](Value) { allocate(); }, [&] { return attendTokens(); },
                [&](const RowStates &states, WorkItemCode::Store store) {
                  if (isPersistent(block.getConfig()))
                    b.recomputePlaces();
                  store(FragmentResults(block, b, team.getFirstRow(),
                                        team.getFirstColumn()),
                        states);
                }});
  }

private:
  void allocate() {
    queries.allocate();
    tiles.allocate();
    rowNumbers = GroupExchange::allocate(frame, kRowsOfWarpgroup);
  }

  SeesawLoop::Types getTypes() const {
    Type f32 = frame.builder.getF32Type();
    int64_t keys = *block.getConfig().keys;
    return {
        team.getFragment(keys, f32, FragmentLayout::WgmmaAcc),
        team.getFragment(team.countColumns(), f32, FragmentLayout::WgmmaAcc),
        team.getFragment(keys, tiles.getElement(), FragmentLayout::WgmmaA16)};
  }

  /// The warpgroup. Slots of pipes depend on it, whose addresses then are in
  /// uniform registers.
  Value getGroup() const {
    Value group = frame.div(block.rows.work.thread, kWarpgroup);
    return frame.fromI32(unifyLanes(frame, frame.toI32(group)));
  }

  /// The sums of the block's tokens.
  RowStates attendTokens() {
    SeesawLoop::Types types = getTypes();
    GroupExchange exchange(frame, b, rowNumbers, getGroup());
    TileScores scores(block, b, types.score, team.getFirstRow());
    SeesawLoop loop(b, block, tiles, exchange, queries.getTile(), types, scores,
                    getExponentBias(block.getOp(), block.getConfig()));
    Value count = block.findTiles(countThreads(block.getConfig()));
    tiles.start(count);
    items.storeQueries(queries, count, /*isAsyncRead=*/true);
    return loop.run(count);
  }

  Frame frame;
  KernelContext kernel;
  TileRows block;
  FragmentBuilder b;
  WorkItems items;
  SeesawTiles tiles;
  QueryStage queries;
  /// The memory of the warpgroups' exchange.
  Value rowNumbers;
  ProductTeam team{block, kWarpgroup, kRowsOfWarpgroup};
};

} // namespace

void kvcache::tileSeesaw(AttentionOp op, const Frame &frame,
                         const AttentionConfig &config) {
  SeesawKernel(op, frame, config).emit();
}
