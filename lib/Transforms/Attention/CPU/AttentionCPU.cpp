//===- AttentionCPU.cpp - Expand kvcache.attention for the CPU ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Attention.h"
#include "../RowNormalizer.h"
#include "CPUTileSoftmax.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// One pass over the keys for a block of query rows: the rows of all heads that
/// share a head of the cache, of one or several tokens, for several heads.
/// Keys and values become f32 once for all rows of the block, a tile of tokens
/// at a time. The next ones are prefetched while these are multiplied. Up to
/// four rows of one token are computed at once, so that a loaded key or value
/// serves all of them.
class CPUAttention {
public:
  CPUAttention(AttentionOp op, const Frame &frame)
      : op(op), frame(frame), f(frame), shape(op), memory(frame, shape),
        tile(frame, op, shape), softmax(frame, op, shape, memory, tile) {}

  void expand() {
    allocate();
    factor = ScoreMath(frame, op).getFactor();
    Value blocks = op.getRows() ? frame.countRows(op.getRowOffsets())
                                : frame.sub(frame.dim(op.getRowOffsets(), 0),
                                            frame.index(1));
    Value chunks = frame.index(shape.sizes.heads / shape.chunk);
    frame.forBlocks({blocks, chunks}, {1, 1}, [&](ValueRange id) {
      rows = op.getRows() ? getSparseRow(frame, op, id[0])
                          : loadRowsAndTokens(frame, op, id[0]);
      attendChunk(id[1]);
    });
  }

private:
  /// The memory of the whole function, so that loops around the op add none.
  void allocate() {
    OpBuilder::InsertionGuard guard(frame.builder);
    if (auto function = op->getParentOfType<FunctionOpInterface>())
      frame.builder.setInsertionPointToStart(
          &function.getFunctionBody().front());
    memory.allocate();
    tile.allocate();
  }

  /// Heads that are computed one after the other for each tile.
  struct Heads {
    Value first, count;
  };
  /// Rows of each head, from one on.
  struct Rows {
    Value first, count;
  };

  /// Computes the rows of a chunk of the heads.
  void attendChunk(Value number) {
    int64_t chunk = shape.chunk, block = shape.block;
    Value all = frame.mul(rows.count, shape.sizes.group);
    // With many rows, those of one head are enough for a cache.
    Value isFew = frame.below(all, frame.index(block + 1));
    auto choose = [&](int64_t few, int64_t many) -> Value {
      return arith::SelectOp::create(frame.builder, frame.loc, isFew,
                                     frame.index(few), frame.index(many));
    };
    Value headsAtOnce = choose(chunk, 1);
    Value most = choose(block, chunk * block);
    Value begin = frame.mul(number, chunk);
    Value end = frame.add(begin, frame.index(chunk));
    frame.loop(begin, end, headsAtOnce, [&](Value head) {
      frame.loop(frame.index(0), all, most, [&](Value first) {
        attend({head, headsAtOnce},
               {first, frame.min(frame.sub(all, first), most)});
      });
    });
  }

  /// Runs `body` for each head, with the number of its first row in the block.
  void forHeads(const Heads &heads,
                function_ref<void(Value head, Value firstRow)> body) {
    frame.loop(frame.index(0), heads.count, frame.index(1), [&](Value h) {
      Value head = frame.add(heads.first, h);
      body(head, frame.mul(h, shape.block));
    });
  }

  /// Runs `body` for every `step`-th row of a head.
  void forRows(Value head, Value firstRow, const Rows &some, int64_t step,
               function_ref<void(const CPURow &)> body) {
    int64_t group = shape.sizes.group;
    frame.loop(frame.index(0), some.count, frame.index(step), [&](Value r) {
      Value number = frame.add(some.first, r);
      Value i = frame.div(number, group), g = frame.rem(number, group);
      body({frame.add(firstRow, r), i, frame.add(rows.first, i),
            frame.add(frame.mul(head, group), g),
            frame.equal(r, frame.index(0)), head});
    });
  }

  void attend(const Heads &heads, const Rows &some) {
    Value one = frame.index(1);
    Value last = frame.sub(frame.add(some.first, some.count), one);
    int64_t group = shape.sizes.group;
    Value first = frame.div(some.first, group);
    auto [from, to] =
        softmax.getMask().getSeenByRows(rows, first, frame.div(last, group));
    forHeads(heads, [&](Value head, Value firstRow) {
      forRows(head, firstRow, some, 1,
              [&](const CPURow &row) { beginRow(row); });
    });
    Value lastToken = frame.sub(to, one);
    frame.loop(from, to, frame.index(kTileTokens), [&](Value token) {
      forHeads(heads, [&](Value head, Value firstRow) {
        tile.load(rows, head, token, lastToken);
        forRows(head, firstRow, some, shape.together,
                [&](const CPURow &row) { addTile(row, token, lastToken); });
      });
    });
    forHeads(heads, [&](Value head, Value firstRow) {
      forRows(head, firstRow, some, 1, [&](const CPURow &row) { endRow(row); });
    });
  }

  void beginRow(const CPURow &row) {
    checkRow(frame, op, row.row);
    Type f32 = frame.builder.getF32Type();
    int64_t keyLanes = shape.keyLanes, valueLanes = shape.valueLanes;
    Value factors =
        f.splat(ScoreMath(frame, op).getFactor(factor, row.head, row.queryHead),
                keyLanes);
    frame.loop(frame.index(0), frame.index(shape.sizes.keySize),
               frame.index(keyLanes), [&](Value d) {
                 Value q = loadJoined(frame, getQueries(op),
                                      {row.row, row.queryHead}, d, keyLanes);
                 memory.storeQuery(f.mul(convertLanes(frame, q, f32), factors),
                                   row, d);
               });
    forValues([&](Value d) {
      memory.storeAcc(f.constant(f.vectorOf(valueLanes), 0), row.inBlock, d);
    });
    memory.clearState(row);
  }

  /// Runs `body` with the first element of each piece of a value.
  void forValues(function_ref<void(Value d)> body) {
    frame.loop(frame.index(0), frame.index(shape.sizes.valueSize),
               frame.index(shape.valueLanes), body);
  }

  /// Adds a tile to rows that may see it. The first rows prefetch in between
  /// their products, so that memory is always busy.
  void addTile(const CPURow &row, Value token, Value lastToken) {
    TokenRange seen = softmax.getMask().getSeen(rows, row);
    Value isAny = softmax.getMask().isAnySeen(rows, row, token, seen);
    auto prefetch = [&](int64_t first) {
      frame.runIf(row.isFirst, [&] {
        for (int64_t j = first; j < first + shape.columns / 2; ++j)
          tile.prefetch(rows, row.head, token, frame.index(j), lastToken);
      });
    };
    frame.runIf(isAny,
                [&] { softmax.add({rows, row, token, seen, prefetch}); });
  }

  void endRow(const CPURow &row) {
    RowNormalizer normalizer(frame, op);
    auto [max, total] = memory.loadState(row);
    RowSum scores{max, total, f.constant(1)};
    RowSum sum = normalizer.addSink(scores, row.queryHead);
    Value factors = f.splat(
        normalizer.getQuotient(sum, row.head, row.queryHead), shape.valueLanes);
    forValues([&](Value d) {
      Value values = memory.loadAcc(row.inBlock, d);
      storeDense(frame, f.mul(values, factors), op.getOut(),
                 {row.row, row.queryHead}, d);
    });
    normalizer.storeStatistics(scores, sum, /*bias=*/0, row.row, row.queryHead);
  }

  AttentionOp op;
  const Frame &frame;
  DeviceMath f;
  CPUShape shape;
  CPURowMemory memory;
  CPUTile tile;
  CPUTileSoftmax softmax;
  Value factor;
  QueryRows rows;
};

} // namespace

void kvcache::expandForCPU(AttentionOp op, const Frame &frame) {
  CPUAttention(op, frame).expand();
}
