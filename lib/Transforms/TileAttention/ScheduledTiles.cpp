//===- ScheduledTiles.cpp - Work items of a persistent kernel -------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduledTiles.h"

#include "../Attention/BlockTokens.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// An entry of the schedule: the whole rows of a sequence, which take longest
/// and come first, or the splits of a tile of its rows. `number` and `slot` are
/// those of a tile with splits.
struct ScheduleEntry {
  Value isWhole, sequence, number, slot;
};

} // namespace

static ScheduleEntry findEntry(const KernelContext &kernel, Value batch,
                               Value entry) {
  const Frame &frame = kernel.frame;
  int64_t splitTiles = kernel.shape.splitTiles;
  ScheduleEntry found;
  found.isWhole = frame.below(entry, batch);
  Value split = frame.sub(entry, batch);
  found.sequence =
      arith::SelectOp::create(frame.builder, frame.loc, found.isWhole, entry,
                              frame.div(split, splitTiles));
  found.number =
      arith::SelectOp::create(frame.builder, frame.loc, found.isWhole,
                              frame.index(0), frame.rem(split, splitTiles));
  found.slot = frame.mul(found.sequence, kernel.splits.getRows());
  if (kernel.getOp().getRows())
    found.slot = frame.add(found.slot, found.number);
  return found;
}

/// The work items of an entry: tiles, or splits.
static Value countItems(const KernelContext &kernel, Value batch,
                        Value number) {
  const Frame &frame = kernel.frame;
  AttentionOp op = kernel.getOp();
  int64_t perBlock = kernel.shape.perBlock;
  ScheduleEntry entry = findEntry(kernel, batch, number);
  QueryRows rows = loadRows(frame, op, entry.sequence);
  Value first = frame.mul(entry.number, perBlock);
  BlockTokens tokens(frame, op, *kernel.config.keys, perBlock);
  auto countTiles = [&] {
    return frame.div(frame.add(rows.count, frame.index(perBlock - 1)),
                     perBlock);
  };
  Value isThere = arith::AndIOp::create(
      frame.builder, frame.loc, frame.below(first, rows.count),
      kernel.splits.hasRows(entry.isWhole, rows.count));
  auto count = [&]() -> Value {
    return frame.selectIf(entry.isWhole, countTiles, [&] {
      return tokens.countSplits(kernel.splits, rows, first);
    });
  };
  return frame.selectIf(isThere, count, [&] { return frame.index(0); });
}

static TileWork getWork(const KernelContext &kernel, Value batch,
                        const RunningItem &running, const ScheduledItem &item) {
  const Frame &frame = kernel.frame;
  AttentionOp op = kernel.getOp();
  TileWork work;
  work.thread = item.thread;
  work.carried = item.carried;
  if (op.getRows())
    work.columns = frame.fromI32(
        running.unify(frame.toI32(countIds(frame, op.getRows()))));
  work.workspace =
      std::make_shared<const Workspace>(kernel.splits.getWorkspace(item.slots));
  HeadShare heads = HeadShare::find(kernel, item.share);
  work.head = heads.head;
  work.firstHead = heads.firstHead;
  ScheduleEntry entry = findEntry(kernel, batch, item.entry);
  work.isWhole = entry.isWhole;
  work.sequence = entry.sequence;
  work.slot = entry.slot;
  work.split = arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                                       frame.index(0), item.number);
  // The last rows of a causal prompt see most, and begin first.
  QueryRows rows = loadRows(frame, op, work.sequence);
  Value last =
      frame.div(frame.sub(rows.count, frame.index(1)), kernel.shape.perBlock);
  work.number =
      arith::SelectOp::create(frame.builder, frame.loc, work.isWhole,
                              frame.sub(last, item.number), entry.number);
  return work;
}

TileWork ScheduledTile::reloadWork(const KernelContext &kernel) const {
  return getWork(kernel, batch, item, item.reload());
}

void kvcache::forScheduledTiles(
    const KernelContext &kernel, int64_t threads,
    function_ref<void(Value)> allocate,
    function_ref<void(const ScheduledTile &)> body) {
  const Frame &frame = kernel.frame;
  Value batch = frame.countSequences(kernel.getOp().getRowOffsets());
  Value slots = kernel.splits.countSlots();
  kernel.splits.checkWorkspace(slots);
  Value entries = frame.mul(batch, 1 + kernel.shape.splitTiles);
  int64_t blocks = *kernel.config.persistent;
  frame.forBlocks({frame.index(blocks)}, {1}, [&](ValueRange) {
    frame.forThreads({threads}, [&](ValueRange ids) {
      allocate(ids[0]);
      PersistentScheduler(frame, kernel.splits, slots, blocks,
                          kernel.shape.across, ids[0])
          .run(
              entries,
              [&](Value entry) { return countItems(kernel, batch, entry); },
              [&](const RunningItem &item) {
                body({getWork(kernel, batch, item, item.get()), item, batch});
              });
    });
  });
}
