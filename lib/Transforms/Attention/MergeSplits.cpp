//===- MergeSplits.cpp - Expand kvcache.merge_splits ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeSplits.h"

#include "../Builders/Heads.h"
#include "../PlanAttention/TileSizes.h"
#include "SplitStates.h"
#include "Workspace.h"

#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Teams of threads of a block, and splits of a team whose loads are under way.
/// A team is at most a warp, so that a row of 128 floats is one access.
constexpr int64_t kTeams = kAddedSplits, kInFlight = 8;

/// How threads divide a query head of a row: blocks, threads of a team, and
/// elements of a thread.
struct Division {
  int64_t blocks, lanes, width;

  explicit Division(int64_t elements) : width(std::gcd<int64_t>(elements, 4)) {
    lanes = getDivisorUpTo(elements / width, kWarp);
    blocks = elements / width / lanes;
  }
};

/// A thread of a block: its team, its number there, its query head, and its
/// first element.
struct MergeThread {
  Value team, lane, queryHead, d;
};

/// The states of teams, in the shared memory of a block.
class TeamTiles {
public:
  TeamTiles(const Frame &frame, const Division &division)
      : builder(frame.builder), frame(frame), f(frame), width(division.width),
        states(allocate(2)), accs(allocate(division.lanes * width)) {}

  void store(const SplitState &state, const MergeThread &thread) {
    Value rowState =
        vector::FromElementsOp::create(builder, frame.loc, f.vectorOf(2),
                                       ValueRange{state.rowMax, state.rowSum});
    frame.runIf(frame.equal(thread.lane, frame.index(0)), [&] {
      TileStoreOp::create(builder, frame.loc, rowState, states, thread.team,
                          frame.index(0));
    });
    TileStoreOp::create(builder, frame.loc, state.acc, accs, thread.team,
                        frame.mul(thread.lane, width));
  }

  SplitState load(int64_t team, Value lane) {
    auto load = [&](Value tile, Value column, int64_t count) -> Value {
      return TileLoadOp::create(builder, frame.loc, f.vectorOf(count), tile,
                                frame.index(team), column);
    };
    Value state = load(states, frame.index(0), 2);
    return {vector::ExtractOp::create(builder, frame.loc, state, 0),
            vector::ExtractOp::create(builder, frame.loc, state, 1),
            load(accs, frame.mul(lane, width), width)};
  }

private:
  Value allocate(int64_t columns) {
    constexpr int64_t unitColumns = 4;
    auto type = TileType::get(builder.getContext(), kTeams,
                              llvm::alignTo(columns, unitColumns),
                              builder.getF32Type(), Swizzle::None);
    return AllocTileOp::create(builder, frame.loc, type, IntegerAttr());
  }

  OpBuilder &builder;
  const Frame &frame;
  DeviceMath f;
  int64_t width;
  Value states, accs;
};

/// Merges the elements of a thread, in a launch of its own. A block that ends a
/// split would have to wait for others, or the last one merged all splits of
/// its rows alone, while the rest of the chip had nothing to do. Here each
/// query head of each row has blocks of its own.
class SplitMerger {
public:
  SplitMerger(MergeSplitsOp op, const Frame &frame, const Workspace &workspace,
              const Division &division, const MergeThread &thread)
      : op(op), frame(frame), builder(frame.builder), loc(frame.loc),
        workspace(workspace), division(division), thread(thread),
        adder(frame, division.width), teams(frame.isGPU ? kTeams : 1) {}

  void mergeSlot(Value slot) {
    int64_t most = op.getSplitOrDefault().getRows();
    Value sequence = frame.div(slot, most);
    Value i = frame.sub(slot, frame.mul(sequence, most));
    Value first = frame.loadNumber(op.getRowOffsets(), sequence);
    Value next = frame.loadNumber(op.getRowOffsets(),
                                  frame.add(sequence, frame.index(1)));
    Value rows = frame.sub(next, first);
    Value isSplit = frame.below(rows, frame.index(most + 1));
    Value isRow =
        arith::AndIOp::create(builder, loc, isSplit, frame.below(i, rows));
    Value row = frame.add(first, i);
    frame.runIf(isRow, [&] {
      Value count = countSplits({sequence, first, rows, i});
      check(row, count);
      frame.runIf(frame.below(frame.index(1), count),
                  [&] { mergeRow(row, slot, count); });
    });
  }

private:
  /// With checks, `out` has the row, and the workspace has its splits.
  void check(Value row, Value count) {
    if (!frame.hasChecks)
      return;
    int64_t most = op.getSplitOrDefault().getMax();
    frame.checkFirst(row, "row", {{"out", op.getOut()}});
    CheckOp::create(builder, loc, count, frame.index(most + 1),
                    "number of splits that 'count' yields");
  }

  /// Copies the ops of the region `count`.
  Value countSplits(ArrayRef<Value> arguments) {
    Block &body = op.getCount().front();
    IRMapping mapping;
    mapping.map(body.getArguments(), arguments);
    for (Operation &nested : body.without_terminator())
      builder.clone(nested, mapping);
    return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
  }

  void mergeRow(Value row, Value slot, Value count) {
    SplitState state =
        addSplits(workspace.getSplit(slot, frame.index(0)), count);
    if (teams == 1)
      return storeRow(row, state);
    TeamTiles tiles(frame, division);
    tiles.store(state, thread);
    gpu::BarrierOp::create(builder, loc);
    frame.runIf(frame.equal(thread.team, frame.index(0)), [&] {
      SmallVector<SplitState> all;
      for (int64_t t = 0; t < teams; ++t)
        all.push_back(tiles.load(t, thread.lane));
      storeRow(row, adder.add(all));
    });
  }

  /// The state of the team's splits: every `teams`-th one.
  SplitState addSplits(Value first, Value count) {
    SplitState none = adder.getNone();
    auto loop = scf::ForOp::create(
        builder, loc, thread.team, count, frame.index(teams * kInFlight),
        ValueRange{none.rowMax, none.rowSum, none.acc},
        [&](OpBuilder &, Location, Value split, ValueRange carried) {
          SmallVector<SplitState> all{{carried[0], carried[1], carried[2]}};
          for (int64_t u = 0; u < kInFlight; ++u)
            all.push_back(
                load(first, frame.add(split, frame.index(u * teams)), count));
          SplitState state = adder.add(all);
          scf::YieldOp::create(
              builder, loc, ValueRange{state.rowMax, state.rowSum, state.acc});
        });
    return {loop.getResult(0), loop.getResult(1), loop.getResult(2)};
  }

  /// Loads a split. A split after the last adds nothing.
  SplitState load(Value first, Value split, Value count) {
    Value isSplit = frame.below(split, count);
    Value last = frame.sub(count, frame.index(1));
    Value number = frame.add(first, frame.min(split, last));
    auto [rowMax, rowSum] = workspace.loadState(number, thread.queryHead);
    Value acc =
        workspace.loadAcc(number, thread.queryHead, thread.d, division.width);
    return adder.selectIf(isSplit, {rowMax, rowSum, acc});
  }

  void storeRow(Value row, const SplitState &state) {
    storeMerged(frame, RowOperands::get(op), state,
                {row, thread.queryHead, thread.d, getHead()},
                op.getExponentBias().convertToFloat());
  }

  /// The head of the cache whose scale the values have; null without one.
  Value getHead() {
    auto scale =
        dyn_cast_if_present<TypedValue<MemRefType>>(op.getValueScale());
    if (!scale)
      return Value();
    int64_t heads = op.getOut().getType().getDimSize(1);
    return frame.div(thread.queryHead, heads / scale.getType().getDimSize(0));
  }

  MergeSplitsOp op;
  const Frame &frame;
  OpBuilder &builder;
  Location loc;
  const Workspace &workspace;
  const Division &division;
  MergeThread thread;
  SplitAdder adder;
  int64_t teams;
};

} // namespace

/// Gives the launch that a loop becomes a name.
static void nameKernel(MergeSplitsOp op, Operation *grid) {
  StringRef function =
      SymbolTable::getSymbolName(op->getParentOfType<FunctionOpInterface>());
  grid->setAttr("function",
                FlatSymbolRefAttr::get(op.getContext(),
                                       (function + "_merge_kernel").str()));
}

void kvcache::expand(MergeSplitsOp op, const Frame &frame) {
  MemRefType out = op.getOut().getType();
  int64_t heads = out.getDimSize(1), elements = out.getDimSize(2);
  Division division(elements);
  auto shape = WorkspaceShape::get(heads, elements, op.getSplitOrDefault());
  Value batch = frame.countSequences(op.getRowOffsets());
  Value slots = frame.mul(batch, shape.rows);
  Workspace workspace(frame, op.getWorkspace(), slots, shape);
  Workspace::check(frame, op.getWorkspace(), slots, shape);
  int64_t teams = frame.isGPU ? kTeams : 1;
  Operation *grid = frame.forBlocks(
      {frame.mul(slots, heads * division.blocks)}, {1}, [&](ValueRange block) {
        frame.forThreads({teams, division.lanes}, [&](ValueRange ids) {
          Value number = frame.div(block[0], division.blocks);
          Value queryHead = frame.rem(number, heads);
          Value share =
              frame.mul(frame.rem(block[0], division.blocks), division.lanes);
          Value d = frame.mul(frame.add(share, ids[1]), division.width);
          SplitMerger(op, frame, workspace, division,
                      {ids[0], ids[1], queryHead, d})
              .mergeSlot(frame.div(number, heads));
        });
      });
  if (frame.isGPU)
    nameKernel(op, grid);
}
