//===- AttentionMerge.cpp - Merge the parts of rows of attention ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ExpandOps/Heads.h"
#include "../TileAttention/BlockTokens.h"
#include "../TileAttention/TileGrid.h"
#include "Attention.h"
#include "RowNormalizer.h"

#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Parts that a block loads at once, by a team of threads each, and those of a
/// thread that are under way. A team is at most a warp, so that a row of 128
/// floats is one access.
constexpr int64_t kTeams = 8, kInFlight = 8;

/// Merges parts in a launch of its own. A block that ends a part would have to
/// wait for others, or the last one merged all parts of its rows alone, while
/// the rest of the chip had nothing to do. Here each query head of each row has
/// blocks of its own.
///
/// The order of the sums depends on the number of parts only.
class SplitMerger {
public:
  SplitMerger(AttentionOp op, const Frame &frame, const TilePlan &plan,
              float bias)
      : grid(op, frame, plan), frame(grid.frame), f(frame), bias(bias),
        width(std::gcd<int64_t>(grid.sizes.valueSize, 4)),
        lanes(getDivisorUpTo(grid.sizes.valueSize / width, kWarp)) {}

  void expand() {
    int64_t queryHeads = grid.sizes.heads * grid.sizes.group;
    int64_t rowShares = grid.sizes.valueSize / width / lanes;
    grid.splits.makeWorkspace(grid.splits.countSlots());
    Value slots = grid.splits.getSlots();
    Operation *blocks = frame.forBlocks(
        {frame.mul(slots, queryHeads * rowShares)}, {1}, [&](ValueRange block) {
          frame.forThreads({kTeams, lanes}, [&](ValueRange ids) {
            team = ids[0];
            lane = ids[1];
            Value number = frame.div(block[0], rowShares);
            queryHead = frame.rem(number, queryHeads);
            head = frame.div(queryHead, grid.sizes.group);
            Value share = frame.mul(frame.rem(block[0], rowShares), lanes);
            d = frame.mul(frame.add(share, lane), width);
            mergeSlot(frame.div(number, queryHeads));
          });
        });
    // The launch that it becomes takes the name.
    StringRef function = SymbolTable::getSymbolName(
        grid.op->getParentOfType<FunctionOpInterface>());
    blocks->setAttr("function",
                    FlatSymbolRefAttr::get(frame.builder.getContext(),
                                           (function + "_merge_kernel").str()));
  }

private:
  /// The maximum, the total and the sums of some parts.
  struct Sums {
    Value max, total, values;
  };

  void mergeSlot(Value slot) {
    int64_t splitRows = grid.splits.getRows(), perBlock = grid.shape.perBlock;
    Value sequence = frame.div(slot, splitRows);
    Value i = frame.sub(slot, frame.mul(sequence, splitRows));
    QueryRows rows = loadRows(frame, grid.op, sequence);
    Value isSplit = frame.below(rows.count, frame.index(splitRows + 1));
    Value isRow = arith::AndIOp::create(frame.builder, frame.loc, isSplit,
                                        frame.below(i, rows.count));
    Value row = frame.add(rows.first, i);
    frame.runIf(isRow, [&] {
      Value parts = BlockTokens(frame, grid.op, grid.plan.tokens, perBlock)
                        .countSplits(grid.splits, rows,
                                     frame.sub(i, frame.rem(i, perBlock)));
      frame.runIf(frame.below(frame.index(1), parts), [&] {
        Value first = grid.splits.getWorkspace().getPart(slot, frame.index(0));
        store(addParts(first, parts));
        gpu::BarrierOp::create(frame.builder, frame.loc);
        frame.runIf(frame.equal(team, frame.index(0)),
                    [&] { endRow(row, addTeams()); });
      });
    });
  }

  /// The sums of the team's parts: every `kTeams`-th one.
  Sums addParts(Value first, Value parts) {
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, team, parts, frame.index(kTeams * kInFlight),
        ValueRange{f.constant(kLowest), f.constant(0),
                   f.constant(f.vectorOf(width), 0)},
        [&](OpBuilder &, Location, Value part, ValueRange carried) {
          SmallVector<Sums> all{{carried[0], carried[1], carried[2]}};
          for (int64_t u = 0; u < kInFlight; ++u)
            all.push_back(
                load(first, frame.add(part, frame.index(u * kTeams)), parts));
          Sums sums = add(all);
          scf::YieldOp::create(frame.builder, frame.loc,
                               ValueRange{sums.max, sums.total, sums.values});
        });
    return {loop.getResult(0), loop.getResult(1), loop.getResult(2)};
  }

  /// A part. One after the last has no weight.
  Sums load(Value first, Value part, Value parts) {
    Value isPart = frame.below(part, parts);
    Value last = frame.sub(parts, frame.index(1));
    Value number = frame.add(first, frame.min(part, last));
    auto [max, total] = grid.splits.getWorkspace().loadState(number, queryHead);
    Value values =
        grid.splits.getWorkspace().loadSums(number, queryHead, d, width);
    return {f.select(isPart, max, f.constant(kLowest)),
            f.select(isPart, total, f.constant(0)),
            f.select(isPart, values, f.constant(f.vectorOf(width), 0))};
  }

  Sums add(ArrayRef<Sums> all) {
    Sums sums{all[0].max, f.constant(0), f.constant(f.vectorOf(width), 0)};
    for (const Sums &each : all.drop_front())
      sums.max = f.max(sums.max, each.max);
    for (const Sums &each : all) {
      Value weight = f.exp2(f.sub(each.max, sums.max));
      sums.total = f.fma(weight, each.total, sums.total);
      sums.values = f.fma(f.splat(weight, width), each.values, sums.values);
    }
    return sums;
  }

  //===--------------------------------------------------------------------===//
  // Teams
  //===--------------------------------------------------------------------===//

  Value allocate(int64_t columns) {
    constexpr int64_t unitColumns = 4;
    auto type = TileType::get(frame.builder.getContext(), kTeams,
                              llvm::alignTo(columns, unitColumns),
                              frame.builder.getF32Type(), Swizzle::None);
    return AllocTileOp::create(frame.builder, frame.loc, type, IntegerAttr());
  }

  void store(const Sums &sums) {
    states = allocate(2);
    values = allocate(lanes * width);
    Value state =
        vector::FromElementsOp::create(frame.builder, frame.loc, f.vectorOf(2),
                                       ValueRange{sums.max, sums.total});
    frame.runIf(frame.equal(lane, frame.index(0)), [&] {
      TileStoreOp::create(frame.builder, frame.loc, state, states, team,
                          frame.index(0));
    });
    TileStoreOp::create(frame.builder, frame.loc, sums.values, values, team,
                        frame.mul(lane, width));
  }

  /// The sums of all teams.
  Sums addTeams() {
    SmallVector<Sums> all;
    for (int64_t t = 0; t < kTeams; ++t) {
      auto load = [&](Value tile, Value column, int64_t count) -> Value {
        return TileLoadOp::create(frame.builder, frame.loc, f.vectorOf(count),
                                  tile, frame.index(t), column);
      };
      Value state = load(states, frame.index(0), 2);
      all.push_back(
          {vector::ExtractOp::create(frame.builder, frame.loc, state, 0),
           vector::ExtractOp::create(frame.builder, frame.loc, state, 1),
           load(values, frame.mul(lane, width), width)});
    }
    return add(all);
  }

  void endRow(Value row, const Sums &sums) {
    RowSum scores{sums.max, sums.total, f.constant(1)};
    RowNormalizer normalizer(frame, grid.op);
    RowSum sum = normalizer.addSink(scores, queryHead);
    Value factors =
        f.splat(normalizer.getQuotient(sum, head, queryHead), width);
    storeDense(frame, f.mul(sums.values, factors), grid.op.getOut(),
               {row, queryHead}, d);
    frame.runIf(frame.equal(d, frame.index(0)), [&] {
      normalizer.storeStatistics(scores, sum, bias, row, queryHead);
    });
  }

  TileGrid grid;
  const Frame &frame;
  DeviceMath f;
  /// The difference of largest scores and the maxima of parts.
  float bias;
  /// Elements of a thread, and threads of a team.
  int64_t width, lanes;
  Value team, lane, head, queryHead;
  /// The first element of the thread.
  Value d;
  /// The sums of teams, in shared memory.
  Value states, values;
};

} // namespace

void kvcache::expandMerge(AttentionOp op, const Frame &frame,
                          const TilePlan &plan, float bias) {
  SplitMerger(op, frame, plan, bias).expand();
}
