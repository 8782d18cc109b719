//===- Pool.cpp - Expand kvcache.pool -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pool.h"

#include "../Builders/Heads.h"
#include "RowPosition.h"

#include "kvcache/Support/FloatBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Summarizes some elements of a head of the keys of a group.
class GroupPooler {
public:
  GroupPooler(PoolOp op, const Frame &frame, int64_t lanes)
      : op(op), frame(frame), f(frame.builder, frame.loc), lanes(lanes),
        size(cast<CacheTypeInterface>(op.getCache().getType()).getHeadSize()) {}

  /// Stores the summary of the tokens from `first` on, for a thread's elements.
  void pool(Value row, Value sequence, Value first, Value head, Value lane) {
    Value d = frame.mul(lane, lanes);
    SmallVector<Value> sums = op.getMinMax()
                                  ? SmallVector<Value>(2, splat(kNone))
                                  : SmallVector<Value>{splat(0)};
    Value end = frame.add(first, frame.index(op.getWidth()));
    auto loop = scf::ForOp::create(
        frame.builder, frame.loc, first, end, frame.index(1), sums,
        [&](OpBuilder &builder, Location loc, Value token, ValueRange carried) {
          Value key =
              loadElements(frame, op.getCache(), {sequence, token, Value()},
                           head, d, lanes, f.f32);
          scf::YieldOp::create(builder, loc, add(key, carried));
        });
    if (!op.getMinMax()) {
      float width = op.getWidth();
      return store(f.div(loop.getResult(0), width), row, head, d);
    }
    store(loop.getResult(0), row, head, d);
    store(f.negate(loop.getResult(1)), row, head,
          frame.add(d, frame.index(size)));
  }

private:
  /// Less than every element.
  static constexpr float kNone = -std::numeric_limits<float>::infinity();

  Value splat(float number) { return f.constant(f.vectorOf(lanes), number); }

  /// The sum, or the largest elements and the largest ones of opposite sign.
  SmallVector<Value> add(Value key, ValueRange carried) {
    if (!op.getMinMax())
      return {f.add(carried[0], key)};
    return {f.max(carried[0], key), f.max(carried[1], f.negate(key))};
  }

  void store(Value values, Value row, Value head, Value d) {
    storeDense(frame, values, op.getPooled(), {row, head}, d);
  }

  PoolOp op;
  const Frame &frame;
  FloatBuilder f;
  int64_t lanes, size;
};

} // namespace

/// Summarizes the group that a row closes, if it does.
static void poolRow(PoolOp op, const Frame &frame, int64_t lanes, Value row,
                    Value head, Value lane) {
  RowPosition position = RowPosition::find(
      frame, {op.getCache(), op.getRowOffsets(), Value()}, row);
  int64_t width = op.getWidth();
  Value rest = frame.rem(position.visible, width);
  frame.runIf(frame.equal(rest, frame.index(0)), [&] {
    Value first = frame.sub(position.visible, frame.index(width));
    GroupPooler(op, frame, lanes)
        .pool(row, position.sequence, first, head, lane);
  });
}

void kvcache::expand(PoolOp op, const Frame &frame) {
  auto pooled = cast<MemRefType>(op.getPooled().getType());
  int64_t size =
      cast<CacheTypeInterface>(op.getCache().getType()).getHeadSize();
  int64_t heads = pooled.getDimSize(1);
  int64_t atOnce = frame.getFloatsAtOnce(size, {pooled.getElementType()});
  Split split = splitHead(size, size, getLanes(op.getCache(), size, atOnce));
  int64_t headThreads = split.getHeadThreads(heads, frame.blockThreads);
  Value rows = frame.dim(op.getPooled(), 0), headEnd = frame.index(heads);
  frame.forBlocks(
      {rows, headEnd}, {1, headThreads},
      [&](ValueRange block) {
        frame.forThreads({headThreads, split.lanes}, [&](ValueRange thread) {
          Value isUsed =
              frame.below(block[0], frame.countRows(op.getRowOffsets()));
          frame.runIf(isUsed, [&] {
            poolRow(op, frame, split.unit, block[0],
                    frame.add(block[1], thread[0]), thread[1]);
          });
        });
      },
      /*alongX=*/0);
}
