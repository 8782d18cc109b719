//===- Pool.cpp - Expand kvcache.pool -------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pool.h"

#include "../Builders/DeviceMath.h"
#include "../Builders/Heads.h"
#include "RowPosition.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The most threads of a block.
constexpr int64_t kMostThreads = 1024;

/// Tokens of a sequence, from `begin` to before `end`.
struct GroupTokens {
  Value begin, end;
};

/// A thread's elements of the row that closes a group: from `d` on of a head.
struct SummaryPlace {
  Value row, head, d;
};

/// Summarizes some elements of a head of the keys of a group.
class GroupPooler {
public:
  GroupPooler(PoolOp op, const Frame &frame, const RowPosition &position,
              const SummaryPlace &place, int64_t lanes)
      : op(op), frame(frame), f(frame), position(position), place(place),
        lanes(lanes) {}

  /// Store the summary of the group whose last token is the row's.
  void poolMean();
  void poolExtremes();
  void poolGated();

private:
  /// Loads a token's elements from an offset after `d` on.
  using Load = function_ref<Value(int64_t offset)>;
  /// Returns the state after a token.
  using Step = function_ref<SmallVector<Value>(Load load, ValueRange state)>;

  /// The tokens of the group.
  GroupTokens getGroup();
  /// The state after all tokens of a range.
  SmallVector<Value> accumulate(const GroupTokens &tokens,
                                SmallVector<Value> state, Step step);
  /// Such a state, of tokens that are all in the cache or all in `new_rows`.
  SmallVector<Value> accumulateFrom(const GroupTokens &tokens, bool isNew,
                                    ValueRange state, Step step);
  Value splat(float number) { return f.constant(f.vectorOf(lanes), number); }
  /// Stores elements of the summary, from an offset after `d` on.
  void store(Value values, int64_t offset = 0) {
    storeDense(frame, values, op.getPooled(), {place.row, place.head},
               frame.add(place.d, frame.index(offset)));
  }

  PoolOp op;
  const Frame &frame;
  DeviceMath f;
  RowPosition position;
  SummaryPlace place;
  int64_t lanes;
};

} // namespace

GroupTokens GroupPooler::getGroup() {
  Value width = frame.index(op.getWidth());
  return {frame.sub(position.visible, width), position.visible};
}

SmallVector<Value> GroupPooler::accumulateFrom(const GroupTokens &tokens,
                                               bool isNew, ValueRange state,
                                               Step step) {
  // The row that closes the group is that of token `visible - 1`.
  Value next = frame.add(place.row, frame.index(1));
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, tokens.begin, tokens.end, frame.index(1), state,
      [&](OpBuilder &builder, Location loc, Value token, ValueRange carried) {
        auto load = [&](int64_t offset) -> Value {
          Value d = frame.add(place.d, frame.index(offset));
          if (!isNew)
            return loadElements(frame, op.getCache(),
                                {position.sequence, token, Value()}, place.head,
                                d, lanes, f.f32);
          Value row = frame.sub(frame.add(next, token), position.visible);
          return convertLanes(
              frame,
              loadDense(frame, op.getNewRows(), {row, place.head}, d, lanes),
              f.f32);
        };
        scf::YieldOp::create(builder, loc, step(load, carried));
      });
  return llvm::to_vector_of<Value>(loop.getResults());
}

SmallVector<Value> GroupPooler::accumulate(const GroupTokens &tokens,
                                           SmallVector<Value> state,
                                           Step step) {
  if (!op.getNewRows())
    return accumulateFrom(tokens, /*isNew=*/false, state, step);
  GroupTokens old = {tokens.begin, frame.min(tokens.end, position.length)};
  GroupTokens rest = {frame.max(tokens.begin, position.length), tokens.end};
  state = accumulateFrom(old, /*isNew=*/false, state, step);
  return accumulateFrom(rest, /*isNew=*/true, state, step);
}

void GroupPooler::poolMean() {
  SmallVector<Value> sum =
      accumulate(getGroup(), {splat(0)}, [&](Load load, ValueRange state) {
        return SmallVector<Value>{f.add(state[0], load(0))};
      });
  store(f.div(sum[0], op.getWidth()));
}

/// Keeps the largest elements, and the largest ones of opposite sign.
void GroupPooler::poolExtremes() {
  Value none = splat(-std::numeric_limits<float>::infinity());
  SmallVector<Value> largest =
      accumulate(getGroup(), {none, none}, [&](Load load, ValueRange state) {
        Value key = load(0);
        return SmallVector<Value>{f.max(state[0], key),
                                  f.max(state[1], f.negate(key))};
      });
  store(largest[0]);
  store(f.negate(largest[1]),
        cast<CacheTypeInterface>(op.getCache().getType()).getHeadSize());
}

/// Keeps the largest gates, the sums of exponentials relative to them, and the
/// sums of values with these as weights.
void GroupPooler::poolGated() {
  int64_t parts = op.countGatedParts();
  int64_t size =
      cast<CacheTypeInterface>(op.getCache().getType()).getHeadSize() / parts;
  Value lowest = splat(-std::numeric_limits<float>::max());
  SmallVector<Value> state = {lowest, splat(0), splat(0)};
  auto exp = [&](Value difference) {
    return f.exp2(f.mul(difference, splat(llvm::numbers::log2e)));
  };
  auto addPart = [&](const GroupTokens &tokens, int64_t part) {
    state = accumulate(tokens, state, [&](Load load, ValueRange carried) {
      Value value = load(part * size);
      Value gate = load((part + parts / 2) * size);
      Value largest = f.max(carried[0], gate);
      Value rescale = exp(f.sub(carried[0], largest));
      Value weight = exp(f.sub(gate, largest));
      return SmallVector<Value>{
          largest, f.fma(carried[1], rescale, weight),
          f.fma(carried[2], rescale, f.mul(weight, value))};
    });
  };
  GroupTokens group = getGroup();
  if (op.getOverlap()) {
    Value width = frame.index(op.getWidth());
    Value before = frame.sub(frame.max(group.begin, width), width);
    addPart({before, group.begin}, 0);
  }
  addPart(group, op.getOverlap() ? 1 : 0);
  store(f.div(state[2], state[1]));
}

/// Summarizes the group that a row closes, if it does.
static void poolRow(PoolOp op, const Frame &frame, int64_t lanes, Value row,
                    Value head, Value lane) {
  RowPosition position = RowPosition::find(
      frame, {op.getCache(), op.getRowOffsets(), Value()}, row);
  Value rest = frame.rem(position.visible, op.getWidth());
  frame.runIf(frame.equal(rest, frame.index(0)), [&] {
    SummaryPlace place = {row, head, frame.mul(lane, lanes)};
    GroupPooler pooler(op, frame, position, place, lanes);
    if (op.getGated())
      return pooler.poolGated();
    if (op.getMinMax())
      return pooler.poolExtremes();
    pooler.poolMean();
  });
}

void kvcache::expand(PoolOp op, const Frame &frame) {
  auto pooled = cast<MemRefType>(op.getPooled().getType());
  int64_t size =
      cast<CacheTypeInterface>(op.getCache().getType()).getHeadSize();
  if (op.getGated())
    size /= op.countGatedParts();
  int64_t heads = pooled.getDimSize(1);
  int64_t atOnce = frame.getFloatsAtOnce(size, {pooled.getElementType()});
  Split split = splitHead(size, size, getLanes(op.getCache(), size, atOnce));
  int64_t headThreads = split.getHeadThreads(heads, frame.blockThreads);
  int64_t lanes = std::min(split.lanes, kMostThreads);
  Value rows = frame.dim(op.getPooled(), 0), headEnd = frame.index(heads);
  frame.forBlocks(
      {rows, headEnd}, {1, headThreads},
      [&](ValueRange block) {
        frame.forThreads({headThreads, lanes}, [&](ValueRange thread) {
          Value isUsed =
              frame.below(block[0], frame.countRows(op.getRowOffsets()));
          frame.runIf(isUsed, [&] {
            Value head = frame.add(block[1], thread[0]);
            frame.forEach(thread[1], split.lanes, lanes, [&](Value lane) {
              poolRow(op, frame, split.unit, block[0], head, lane);
            });
          });
        });
      },
      /*alongX=*/0);
}
