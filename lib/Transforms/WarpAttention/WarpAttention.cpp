//===- WarpAttention.cpp - Attention of warps without tensor cores --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpAttention.h"

#include "../Attention/KeySplits.h"
#include "WarpRow.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The work of a warp: a row, or a split of the tokens that it sees.
struct WarpWork {
  /// Whether the row is not split. Otherwise it has a slot in the workspace.
  Value isWhole;
  Value batch, row, slot, split;
};

/// A warp computes a row for some query heads of a group. Lanes share the
/// elements of a token, and the warp computes several tokens at once, without
/// shared memory. A result does not depend on other rows.
///
/// With a workspace, rows are split, and another launch merges the splits.
class WarpGrid {
public:
  WarpGrid(AttentionOp op, const Frame &frame, const AttentionConfig &config)
      : op(op), frame(frame), sizes(op), splits(frame, op), lanes(op, config),
        warpRow(frame, op, lanes) {}

  void expand() {
    // Blocks beside each other read the same tokens.
    int64_t across = sizes.heads * countShares();
    Value items = frame.dim(op.getQ(), 0), layers = frame.index(1);
    std::optional<Workspace> workspace;
    if (op.getWorkspace()) {
      Value slots = splits.countSlots();
      workspace.emplace(splits.getWorkspace(slots));
      splits.checkWorkspace(slots);
      items = countItems(items, slots);
      layers = frame.index(1 + splits.countLayers());
    }
    frame.forBlocks(
        {frame.mul(items, across), layers}, {1, 1},
        [&](ValueRange block) {
          frame.forThreads({kWarp}, [&](ValueRange ids) {
            setLanes(ids[0], block[0]);
            Value item = frame.div(block[0], across);
            if (workspace)
              attendItem(item, block[1], *workspace);
            else
              attendRow(item);
          });
        },
        /*alongX=*/0);
  }

private:
  /// Counts rows and splits of a layer of the grid.
  Value countItems(Value rows, Value slots) {
    Value perLayer = frame.mul(slots, splits.countPerLayer());
    // Blocks read the offsets of a sequence before they know that it is
    // theirs.
    Value any = frame.min(slots, frame.index(1));
    return frame.mul(frame.max(rows, perLayer), any);
  }

  /// Shares of the heads of a group.
  int64_t countShares() const { return sizes.group / lanes.sizes.rows; }

  /// Sets the lane and the heads of a thread of a block.
  void setLanes(Value thread, Value block) {
    const WarpSizes &warp = lanes.sizes;
    int64_t shares = countShares();
    lanes.lane = frame.rem(thread, warp.lanes);
    lanes.warp = frame.div(thread, warp.lanes);
    Value share = frame.rem(block, sizes.heads * shares);
    lanes.head = frame.div(share, shares);
    lanes.firstHead = frame.add(frame.mul(lanes.head, sizes.group),
                                frame.mul(frame.rem(share, shares), warp.rows));
  }

  //===--------------------------------------------------------------------===//
  // Rows and splits
  //===--------------------------------------------------------------------===//

  /// The tokens that row `first + i` sees.
  TokenRange getTokens(const QueryRows &rows, Value i) {
    VisibleTokens visible(frame, op);
    return visible.restrict(rows, i, i, visible.get(rows, i));
  }

  void attendRow(Value row) {
    frame.runIf(frame.below(row, frame.countRows(op.getRowOffsets())), [&] {
      Value i = frame.index(0);
      QueryRows rows;
      if (op.getRows()) {
        rows = getSparseRow(frame, op, row);
      } else {
        rows = loadRowsAndTokens(frame, op,
                                 frame.findSequence(op.getRowOffsets(), row));
        i = frame.sub(row, rows.first);
      }
      warpRow.begin(rows, i, row);
      warpRow.storeOutputs(warpRow.addRange(getTokens(rows, i)));
    });
  }

  /// The first layer of the grid has whole rows, which take longest, and the
  /// next ones have splits.
  WarpWork getWork(Value item, Value layer) {
    int64_t perLayer = splits.countPerLayer();
    Value isWhole = frame.equal(layer, frame.index(0));
    layer = frame.sub(layer, frame.index(1));
    Value slot = frame.div(item, perLayer);
    Value split =
        frame.add(frame.mul(layer, perLayer), frame.rem(item, perLayer));
    // Branches on what was loaded lie inside of those on the block's number, so
    // that ptxas keeps what all threads of a block share in uniform registers.
    auto findWhole = [&]() -> ValuePair {
      // The first sequence has no row of padding.
      Value batch = frame.selectIf(
          frame.below(item, frame.countRows(op.getRowOffsets())),
          [&] { return frame.findSequence(op.getRowOffsets(), item); },
          [&] { return frame.index(0); });
      return {batch, item};
    };
    auto findSplit = [&]() -> ValuePair {
      // Slots after the last have rows after those that are split.
      Value last = frame.sub(frame.dim(op.getRowOffsets(), 0), frame.index(2));
      Value batch = frame.div(slot, splits.getRows());
      batch = frame.min(batch, last);
      Value i = frame.sub(slot, frame.mul(batch, splits.getRows()));
      Value first = frame.loadNumber(op.getRowOffsets(), batch);
      return {batch, frame.add(first, i)};
    };
    auto [batch, row] = frame.selectPairIf(isWhole, findWhole, findSplit);
    return {isWhole, batch, row, slot, split};
  }

  void attendItem(Value item, Value layer, const Workspace &workspace) {
    WarpWork work = getWork(item, layer);
    QueryRows rows = loadRows(frame, op, work.batch);
    Value i = frame.sub(work.row, rows.first);
    Value isOurs = arith::AndIOp::create(
        frame.builder, frame.loc, frame.below(i, rows.count),
        splits.hasRows(work.isWhole, rows.count));
    frame.runIf(isOurs, [&] {
      if (op.getRows())
        attendSplit(work, getSparseRow(frame, op, work.row), frame.index(0),
                    workspace);
      else
        attendSplit(work, loadRowsAndTokens(frame, op, work.batch), i,
                    workspace);
    });
  }

  void attendSplit(const WarpWork &work, const QueryRows &rows, Value i,
                   const Workspace &workspace) {
    TokenRange seen = getTokens(rows, i);
    Value zero = frame.index(0), one = frame.index(1);
    Value tokens = frame.max(frame.sub(seen.to, seen.from), zero);
    Value size = splits.getSize(work.isWhole, tokens, /*multiple=*/1);
    Value count = splits.getCount(tokens, size);
    Value split = arith::SelectOp::create(frame.builder, frame.loc,
                                          work.isWhole, zero, work.split);
    frame.runIf(frame.below(split, count), [&] {
      Value from = frame.add(seen.from, frame.mul(split, size));
      Value to = frame.min(seen.to, frame.add(from, size));
      warpRow.begin(rows, i, work.row);
      WarpRow::State state = warpRow.addRange({from, to});
      frame.runIf(frame.equal(count, one),
                  [&] { warpRow.storeOutputs(state); });
      frame.runIf(frame.below(one, count), [&] {
        warpRow.storeSplit(state, workspace, work.slot, work.split);
      });
    });
  }

  AttentionOp op;
  const Frame &frame;
  AttentionSizes sizes;
  KeySplits splits;
  WarpLanes lanes;
  WarpRow warpRow;
};

} // namespace

void kvcache::expandForWarps(AttentionOp op, const Frame &frame,
                             const AttentionConfig &config) {
  WarpGrid(op, frame, config).expand();
}
