//===- TopRows.cpp - Expand kvcache.top_rows ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TopRows.h"

#include "../Builders/Heads.h"
#include "CandidateBuffer.h"
#include "RowPosition.h"
#include "ScoreKeys.h"
#include "SplitCandidates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Threads of a block without a hint.
constexpr int64_t kThreads = 1024;

Value getFlag(const Frame &frame, bool flag) {
  return arith::ConstantIntOp::create(frame.builder, frame.loc, flag, 1);
}

/// Selects from one row of scores.
class RowSelector {
public:
  RowSelector(TopRowsOp op, const RowTeam &team, ValueRange row)
      : op(op), team(team), frame(team.frame), row(row) {}

  void select() {
    frame.runIf(
        frame.below(row[0], frame.countRows(op.getRowOffsets())),
        [&] { selectRow(); },
        [&] {
          forColumns([&](Value column) {
            storeColumn(column, frame.i32(-1), frame.i32(-1));
          });
        });
  }

  /// Stores the candidates of a split of the row to the workspace.
  void selectSplit(Value split) {
    Value isUsed = frame.below(row[0], frame.countRows(op.getRowOffsets()));
    frame.runIf(isUsed, [&] {
      Value all = findCandidates().count;
      checkColumns(frame, op.getScores(), all);
      ChunkRanks ranks(team);
      CandidateBuffer buffer(team, ranks, op.countSelected());
      SplitCandidates splits(op, frame, row);
      auto [begin, end] = splits.getRange(split, all);
      Value count = selectScores(buffer, all, begin, end);
      splits.store(team, split, buffer, frame.fromI32(count));
    });
  }

private:
  /// The tokens that the row sees, its sequence, and its candidates.
  struct Candidates {
    RowPosition position;
    Value count;
  };
  Candidates findCandidates() {
    RowPosition position = RowPosition::find(
        frame, {op.getCache(), op.getRowOffsets(), op.getLengths()}, row[0]);
    Value visible = position.visible;
    int64_t width = op.getWidth();
    Value rounded =
        op.getWhole() ? visible : frame.add(visible, frame.index(width - 1));
    return {position, frame.div(rounded, width)};
  }

  void selectRow() {
    Candidates all = findCandidates();
    checkColumns(frame, op.getScores(), all.count);
    ChunkRanks ranks(team);
    CandidateBuffer buffer(team, ranks, op.countSelected());
    // The loops over candidates need the registers.
    BlockArray kept(frame, 2);
    Value first = frame.index(0), second = frame.index(1);
    frame.runIf(frame.equal(team.thread, first), [&] {
      kept.store(frame.toI32(all.position.sequence), first);
      kept.store(frame.toI32(all.position.visible), second);
    });
    // All threads wait before the selection ends.
    Value count = frame.fromI32(selectCandidates(buffer, all.count));
    Value sequence = frame.fromI32(kept.load(first));
    Value visible = frame.fromI32(kept.load(second));
    forColumns([&](Value column) {
      auto [token, isToken] = findToken(buffer, column, count, visible);
      storeToken(column, sequence, token, isToken);
    });
  }

  /// Selects from the scores, or from the candidates of splits.
  Value selectCandidates(CandidateBuffer &buffer, Value candidates) {
    Value zero = frame.index(0);
    if (!op.getWorkspace())
      return selectScores(buffer, candidates, zero, candidates);
    SplitCandidates splits(op, frame, row);
    return buffer.select(zero, splits.countPlaces(),
                         [&](Value place) { return splits.load(place); });
  }

  /// Selects from some scores of a row with so many candidates.
  Value selectScores(CandidateBuffer &buffer, Value candidates, Value begin,
                     Value end) {
    ScoreKeys scores(frame, op, row, candidates, end);
    return buffer.select(begin, end, [&](Value place) -> ValuePair {
      Value candidate = frame.toI32(place);
      return {scores.load(candidate), candidate};
    });
  }

  /// The token of a column, and whether there is one.
  ValuePair findToken(const CandidateBuffer &buffer, Value column, Value count,
                      Value visible) {
    int64_t unit = op.countColumnsOfCandidate(), width = op.getWidth();
    Value place = frame.div(column, unit), offset = frame.rem(column, unit);
    return frame.selectPairIf(
        frame.below(place, count),
        [&]() -> ValuePair {
          Value candidate = frame.fromI32(buffer.getCandidate(place));
          Value token = frame.add(frame.mul(candidate, unit), offset);
          Value isToken = op.getExpand() ? frame.below(token, visible)
                                         : getFlag(frame, true);
          return {token, isToken};
        },
        [&]() -> ValuePair {
          Value begin = frame.mul(frame.div(visible, width), width);
          Value token =
              frame.add(begin, frame.sub(column, frame.mul(count, unit)));
          Value isToken = op.getTail() ? frame.below(token, visible)
                                       : getFlag(frame, false);
          return {token, isToken};
        });
  }

  void storeToken(Value column, Value sequence, Value token, Value isToken) {
    Value none = frame.i32(-1);
    Value id = frame.selectIf(
        isToken,
        [&] {
          return frame.toI32(
              encodeRow(frame, op.getCache(), sequence, token, "ids"));
        },
        [&] { return none; });
    storeColumn(column, id,
                arith::SelectOp::create(frame.builder, frame.loc, isToken,
                                        frame.toI32(token), none));
  }

  void storeColumn(Value column, Value id, Value token) {
    SmallVector<Value> place(row);
    place.push_back(column);
    memref::StoreOp::create(frame.builder, frame.loc, id, op.getIds(), place);
    if (op.getTokens())
      memref::StoreOp::create(frame.builder, frame.loc, token, op.getTokens(),
                              place);
  }

  void forColumns(function_ref<void(Value)> body) {
    ArrayRef<int64_t> sizes =
        cast<MemRefType>(op.getIds().getType()).getShape();
    team.forEach(frame.index(sizes.back()), body);
  }

  TopRowsOp op;
  RowTeam team;
  const Frame &frame;
  ValueRange row;
};

} // namespace

/// With checks, the arrays have the sizes that they have in common.
static void checkSizes(TopRowsOp op, const Frame &frame) {
  int64_t rank = cast<MemRefType>(op.getIds().getType()).getRank();
  for (int64_t dimension = 0; dimension < rank - 1; ++dimension) {
    StringRef what = dimension ? "heads" : "rows";
    Size ids{"ids", op.getIds(), dimension};
    frame.checkSize(what, ids, {"scores", op.getScores(), dimension});
    frame.checkSize(what, ids, {"tokens", op.getTokens(), dimension});
    frame.checkSize(what, ids, {"workspace", op.getWorkspace(), dimension});
  }
}

void kvcache::expand(TopRowsOp op, const Frame &frame) {
  checkSizes(op, frame);
  int64_t rank = cast<MemRefType>(op.getIds().getType()).getRank();
  SmallVector<Value> ends;
  for (int64_t dimension = 0; dimension < rank - 1; ++dimension)
    ends.push_back(frame.dim(op.getIds(), dimension));
  int64_t threads = frame.isGPU ? op.getBlockThreads().value_or(kThreads) : 1;
  auto forRows = [&](ArrayRef<Value> blocks, auto select) {
    frame.forBlocks(
        blocks, SmallVector<int64_t>(blocks.size(), 1),
        [&](ValueRange block) {
          frame.forThreads({threads}, [&](ValueRange thread) {
            RowTeam team{frame, thread[0], threads};
            select(RowSelector(op, team, block.take_front(rank - 1)), block);
          });
        },
        /*alongX=*/0);
  };
  if (op.getWorkspace()) {
    SmallVector<Value> splits(ends);
    splits.push_back(frame.index(op.countSplits()));
    forRows(splits, [](RowSelector selector, ValueRange block) {
      selector.selectSplit(block.back());
    });
  }
  forRows(ends, [](RowSelector selector, ValueRange) { selector.select(); });
}
