//===- ManyRows.cpp - Attention of many rows on a CPU ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManyRows.h"

#include "../Attention/MaskBounds.h"
#include "PanelProduct.h"
#include "PanelSoftmax.h"
#include "RowTransfer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Bytes of the queries and accumulators of a block as f32, and of a tile of
/// tokens: together they fit into the second cache. That of CPUs with AMX is
/// larger, and the conversion of a tile takes as long as few products there.
struct BlockLimits {
  int64_t blockBytes, tileBytes, rows, tokens;
};
constexpr BlockLimits kLimits = {1 << 18, 1 << 17, 512, 128};
constexpr BlockLimits kLimitsOfTiles = {1 << 20, 1 << 18, 1024, 256};

static const BlockLimits &getLimits(const HostAttention &attention) {
  return attention.mma == HostMma::AMX ? kLimitsOfTiles : kLimits;
}

/// The largest multiple of `unit` whose numbers of `size` floats have so many
/// bytes, within [unit, most].
static int64_t getCount(int64_t bytes, int64_t size, int64_t unit,
                        int64_t most) {
  int64_t count = bytes / (sizeof(float) * size) / unit * unit;
  return std::clamp(count, unit, most);
}

static RowLanes allocateRows(const HostAttention &attention, int64_t tokens) {
  const AttentionSizes &sizes = attention.sizes;
  const BlockLimits &limits = getLimits(attention);
  int64_t rows = getCount(limits.blockBytes, sizes.keySize + sizes.valueSize,
                          kPanelRows, limits.rows);
  Type f32 = attention.frame.builder.getF32Type();
  Type i32 = attention.frame.builder.getI32Type();
  RowLanes memory;
  memory.rows = rows;
  bool isPaired = attention.usesPairs();
  int64_t vectors = rows / kLanes, depth = sizes.keySize / (isPaired ? 2 : 1);
  memory.queries =
      attention.allocate({vectors, depth, kLanes}, isPaired ? i32 : f32);
  memory.acc = attention.allocate({vectors, sizes.valueSize, kLanes}, f32);
  if (isPaired)
    memory.factors = attention.allocate({rows}, f32);
  memory.rowMax = attention.allocate({rows}, f32);
  memory.rowSum = attention.allocate({rows}, f32);
  memory.from = attention.allocate({rows}, i32);
  memory.length = attention.allocate({rows}, i32);
  if (!attention.op.getModifiers().empty()) {
    memory.heads = attention.allocate({rows}, i32);
    memory.positions = attention.allocate({rows}, i32);
  }
  if (haveSeenBits(attention.op))
    memory.seenBits = attention.allocate({tokens / kWordTokens, rows}, i32);
  memory.scores = attention.allocate({kPanelVectors, tokens, kLanes}, f32);
  return memory;
}

static int64_t getTileTokens(const HostAttention &attention) {
  const AttentionSizes &sizes = attention.sizes;
  int64_t size =
      sizes.keySize + (attention.op.getValueCache() ? sizes.valueSize : 0);
  const BlockLimits &limits = getLimits(attention);
  return getCount(limits.tileBytes, size, kWordTokens, limits.tokens);
}

ManyRows::ManyRows(const HostAttention &attention)
    : attention(attention), tile(attention, getTileTokens(attention)),
      memory(allocateRows(attention, tile.tokens)) {}

namespace {

using Row = HostAttention::Row;

/// Rows [first, first + count) of those of a sequence that share a head.
class RowBlock {
public:
  RowBlock(const HostAttention &attention, const TokenTile &tile,
           const RowLanes &memory, const QueryRows &rows, Value head,
           Value first, Value count)
      : attention(attention), frame(attention.frame), tile(tile),
        memory(memory), rows(rows), lanes(frame), head(head), first(first),
        count(count) {}

  void compute() const {
    const Frame &frame = attention.frame;
    Value last = frame.sub(frame.add(first, count), frame.index(1));
    TokenRange seen =
        attention.getSeen(rows, frame.div(first, attention.sizes.group),
                          frame.div(last, attention.sizes.group));
    forVectors([&](Value lane) { begin(lane); });
    Value start = frame.mul(frame.div(seen.from, tile.tokens), tile.tokens);
    frame.loop(start, seen.to, frame.index(tile.tokens),
               [&](Value token) { addTile(token, seen.to); });
    forVectors([&](Value lane) { end(lane); });
  }

private:
  /// A lane after the last row repeats that row.
  Row getRow(Value lane) const {
    Value last = frame.sub(count, frame.index(1));
    return attention.getRow(rows, head,
                            frame.add(first, frame.min(lane, last)));
  }

  /// Runs `body` with the first lane of each vector of rows.
  void forVectors(function_ref<void(Value lane)> body) const {
    frame.loop(frame.index(0), count, frame.index(kLanes), body);
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  void begin(Value lane) const {
    const DeviceMath &f = attention.f;
    frame.loop(lane, frame.add(lane, frame.index(kLanes)), frame.index(1),
               [&](Value each) { beginRow(getRow(each), each); });
    lanes.store(f.constant(f.vectorOf(kLanes), kLowest), memory.rowMax, lane);
    Value zero = f.constant(f.vectorOf(kLanes), 0);
    lanes.store(zero, memory.rowSum, lane);
    frame.loop(
        frame.index(0), frame.index(attention.sizes.valueSize), frame.index(1),
        [&](Value d) { lanes.store(zero, memory.acc, lanes.at(lane, d)); });
    RowTransfer(attention, memory, head)
        .loadQueries(lane, tile.keyLanes,
                     [&](Value each) { return getRow(each); });
  }

  void beginRow(const Row &row, Value lane) const {
    attention.check(row);
    TokenRange seen = attention.visible.get(rows, row.i);
    Value length = frame.max(frame.sub(seen.to, seen.from), frame.index(0));
    auto store = [&](Value number, Value target) {
      memref::StoreOp::create(frame.builder, frame.loc, frame.toI32(number),
                              target, lane);
    };
    store(seen.from, memory.from);
    store(length, memory.length);
    if (memory.factors)
      memref::StoreOp::create(frame.builder, frame.loc,
                              attention.getFactor(row, head), memory.factors,
                              lane);
    if (!memory.heads)
      return;
    store(row.queryHead, memory.heads);
    store(getQueryPosition(frame, attention.op, rows, row.i), memory.positions);
  }

  void end(Value lane) const {
    frame.loop(lane, frame.add(lane, frame.index(kLanes)), frame.index(1),
               [&](Value each) { endRow(getRow(each), each); });
    RowTransfer(attention, memory, head).storeOutputs(lane, [&](Value each) {
      return getRow(each);
    });
  }

  /// Stores the statistics of a row, and in place of its sum the factor of its
  /// accumulators.
  void endRow(const Row &row, Value lane) const {
    auto load = [&](Value memory) -> Value {
      return memref::LoadOp::create(frame.builder, frame.loc, memory, lane);
    };
    Value factor =
        attention.end(row, head, load(memory.rowMax), load(memory.rowSum));
    memref::StoreOp::create(frame.builder, frame.loc, factor, memory.rowSum,
                            lane);
  }

  //===--------------------------------------------------------------------===//
  // Tokens
  //===--------------------------------------------------------------------===//

  /// Adds the tokens of a tile before `end`.
  void addTile(Value token, Value end) const {
    Value left = frame.min(frame.sub(end, token), frame.index(tile.tokens));
    Value hasNonFinite = tile.load(rows, head, token,
                                   roundUp(left, getTokenSteps(attention.mma)),
                                   frame.sub(end, frame.index(1)));
    if (memory.seenBits)
      storeSeenBits(token);
    Value lanesEnd = roundUp(count, kLanes);
    frame.loop(
        frame.index(0), lanesEnd, frame.index(kPanelRows), [&](Value first) {
          Value rows =
              frame.min(frame.sub(lanesEnd, first), frame.index(kPanelRows));
          addPanel({first, rows}, token, left, hasNonFinite);
        });
  }

  Value roundUp(Value number, int64_t multiple) const {
    Value last = frame.index(multiple - 1);
    return frame.mul(frame.div(frame.add(number, last), multiple), multiple);
  }

  void storeSeenBits(Value token) const {
    SeenBits bits(attention, rows);
    auto storeWords = [&](Value j) {
      Value given = bits.getGivenWord(tile.ids, j);
      auto storeWord = [&](Value lane) {
        Value word =
            bits.computeWord(given, getRow(lane).i, frame.add(token, j));
        memref::StoreOp::create(frame.builder, frame.loc, word, memory.seenBits,
                                ValueRange{frame.div(j, kWordTokens), lane});
      };
      frame.loop(frame.index(0), roundUp(count, kLanes), frame.index(1),
                 storeWord);
    };
    frame.loop(frame.index(0), frame.index(tile.tokens),
               frame.index(kWordTokens), storeWords);
  }

  /// The tokens that any row of a panel may see, and those that all see, by
  /// position.
  AdmittedTokens getBounds(const Panel &panel) const {
    OpBuilder &builder = frame.builder;
    Location loc = frame.loc;
    auto getTokens = [&](Value lane) -> std::pair<Value, Value> {
      Value from = lanes.load(memory.from, lane);
      Value length = lanes.load(memory.length, lane);
      return {from, arith::AddIOp::create(builder, loc, from, length)};
    };
    auto [from, to] = getTokens(panel.first);
    auto loop = scf::ForOp::create(
        builder, loc, frame.index(kLanes), panel.count, frame.index(kLanes),
        ValueRange{from, from, to, to},
        [&](OpBuilder &, Location, Value lane, ValueRange bounds) {
          auto [from, to] = getTokens(frame.add(panel.first, lane));
          scf::YieldOp::create(
              builder, loc,
              ValueRange{arith::MinSIOp::create(builder, loc, bounds[0], from),
                         arith::MaxSIOp::create(builder, loc, bounds[1], from),
                         arith::MinSIOp::create(builder, loc, bounds[2], to),
                         arith::MaxSIOp::create(builder, loc, bounds[3], to)});
        });
    auto reduce = [&](vector::CombiningKind kind, unsigned number) -> Value {
      Value bound = vector::ReductionOp::create(builder, loc, kind,
                                                loop.getResult(number));
      return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                        bound);
    };
    return {{reduce(vector::CombiningKind::MINSI, 0),
             reduce(vector::CombiningKind::MAXSI, 3)},
            {reduce(vector::CombiningKind::MAXSI, 1),
             reduce(vector::CombiningKind::MINSI, 2)}};
  }

  /// Adds `left` tokens of a tile to the rows of a panel.
  void addPanel(const Panel &panel, Value token, Value left,
                Value hasNonFinite) const {
    AdmittedTokens bounds = getBounds(panel);
    Value zero = frame.index(0);
    Value begin = frame.max(frame.sub(bounds.any.from, token), zero);
    int64_t steps = getTokenSteps(attention.mma);
    begin = frame.mul(frame.div(begin, steps), steps);
    Value end = frame.min(frame.sub(bounds.any.to, token), left);
    auto both = [&](Value lhs, Value rhs) -> Value {
      return arith::AndIOp::create(frame.builder, frame.loc, lhs, rhs);
    };
    Value isAny = frame.less(begin, end);
    end = roundUp(frame.max(end, zero), steps);
    Value firstToken = frame.add(token, begin);
    Value endToken = frame.add(token, end);
    Value areAll =
        both(frame.less(bounds.all.from, frame.add(firstToken, frame.index(1))),
             frame.less(frame.sub(endToken, frame.index(1)), bounds.all.to));
    if (Region *mask = attention.op.getMaskRegion()) {
      AdmittedPairs pairs =
          computePairs(frame, *mask, getBox(panel),
                       {firstToken, frame.sub(endToken, frame.index(1))});
      isAny = both(isAny, pairs.any);
      areAll = both(areAll, pairs.all);
    }
    frame.runIf(isAny, [&] {
      addTokens({panel, token, begin, end, false}, areAll, hasNonFinite);
    });
  }

  RowBox getBox(const Panel &panel) const {
    Value end = frame.add(panel.first, panel.count);
    Row from = getRow(panel.first);
    Row to = getRow(frame.sub(end, frame.index(1)));
    Value firstHead = frame.mul(head, attention.sizes.group);
    auto getPosition = [&](const Row &row) {
      return getQueryPosition(frame, attention.op, rows, row.i);
    };
    return {rows.batch,
            {firstHead,
             frame.add(firstHead, frame.index(attention.sizes.group - 1))},
            {getPosition(from), getPosition(to)},
            rows.tokens};
  }

  void addTokens(PanelScores scores, Value areAll, Value hasNonFinite) const {
    multiplyKeys(attention, memory, scores.panel, tile, scores.begin,
                 scores.end);
    PanelSoftmax softmax(attention, rows, memory, tile);
    auto compute = [&](bool areAllSeen) {
      scores.areAllSeen = areAllSeen;
      softmax.run(scores);
    };
    // A region `score` may exclude any token.
    if (memory.seenBits || attention.op.getScoreRegion())
      compute(false);
    else
      frame.runIf(areAll, [&] { compute(true); }, [&] { compute(false); });
    addValues(attention, memory, scores.panel, tile, scores.begin, scores.end,
              hasNonFinite);
  }

  const HostAttention &attention;
  const Frame &frame;
  const TokenTile &tile;
  const RowLanes &memory;
  const QueryRows &rows;
  LaneBuilder lanes;
  Value head, first, count;
};

} // namespace

void ManyRows::compute(const QueryRows &rows, Value head, Value count,
                       Value share) const {
  const Frame &frame = attention.frame;
  Value most = frame.index(memory.rows);
  Value step = frame.index(kRowShares * memory.rows);
  frame.loop(frame.mul(share, most), count, step, [&](Value first) {
    RowBlock(attention, tile, memory, rows, head, first,
             frame.min(frame.sub(count, first), most))
        .compute();
  });
}
