//===- FewRows.cpp - Attention of few rows on a CPU -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FewRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Groups of rows, at most, that each load a tile again.
constexpr int64_t kFewGroups = 4;

FewRows::FewRows(const HostAttention &attention)
    : attention(attention), memory(attention) {}

int64_t FewRows::getMost(const HostAttention &attention) {
  return std::min(kFewRows, kFewGroups * getGroupSize(attention));
}

namespace {

using Row = HostAttention::Row;

/// The few rows of a sequence, for some heads.
class RowsOfHeads {
public:
  RowsOfHeads(const HostAttention &attention, const FewRowsMemory &memory,
              const QueryRows &rows, Value firstHead, Value count)
      : attention(attention), frame(attention.frame), memory(memory),
        rows(rows), firstHead(firstHead), count(count) {}

  void compute() const {
    Value one = frame.index(1);
    Value last = frame.div(frame.sub(count, one), attention.sizes.group);
    TokenRange seen = attention.getSeen(rows, frame.index(0), last);
    forRows([&](const Row &row, Value head, Value inMemory) {
      begin(row, head, inMemory);
    });
    Value lastToken = frame.sub(seen.to, one);
    Value tile = frame.index(kTileTokens), first = seen.from;
    // No page before the first one that is seen need exist.
    if (havePagesOfTiles(attention.op))
      first = frame.mul(frame.div(first, tile), tile);
    frame.loop(first, seen.to, tile,
               [&](Value token) { addTile(token, lastToken); });
    forRows([&](const Row &row, Value head, Value inMemory) {
      end(row, head, inMemory);
    });
  }

private:
  /// Runs `body` for each head, and the number of its first row in memory.
  void forHeads(function_ref<void(Value head, Value inMemory)> body) const {
    frame.loop(frame.index(0), frame.index(memory.heads), frame.index(1),
               [&](Value h) {
                 body(frame.add(firstHead, h), frame.mul(h, kFewRows));
               });
  }
  /// Runs `body` for each row of each head.
  void forRows(function_ref<void(const Row &row, Value head, Value inMemory)>
                   body) const {
    forHeads([&](Value head, Value first) {
      frame.loop(frame.index(0), count, frame.index(1), [&](Value number) {
        body(attention.getRow(rows, head, number), head,
             frame.add(first, number));
      });
    });
  }

  void begin(const Row &row, Value head, Value inMemory) const;
  void end(const Row &row, Value head, Value inMemory) const;
  /// Stores elements of a query from `d` on as pairs.
  void storePairs(Value elements, Value inMemory, Value d) const;
  void addTile(Value token, Value lastToken) const;
  /// Adds a tile whose largest encoded row is `otherId`, or null, for a head.
  void addTileOfHead(const HeadTile &tile, Value firstInMemory) const;
  /// Loads the slots of a tile's columns for a head, and returns the
  /// largest.
  Value loadIds(Value head, Value token, Value lastToken) const;
  void loadScales(const HeadTile &tile) const;

  const HostAttention &attention;
  const Frame &frame;
  const FewRowsMemory &memory;
  const QueryRows &rows;
  Value firstHead, count;
};

} // namespace

void RowsOfHeads::begin(const Row &row, Value head, Value inMemory) const {
  const DeviceMath &f = attention.f;
  attention.check(row);
  Value factor = attention.getFactor(row, head);
  if (memory.hasDots())
    memref::StoreOp::create(frame.builder, frame.loc, factor, memory.factors,
                            inMemory);
  for (const HeadField &field : memory.keys) {
    int64_t width = field.pieces.getWidth();
    auto storePiece = [&](Value piece) {
      Value d = frame.add(piece, frame.index(field.first));
      Value q = loadJoined(frame, getQueries(attention.op),
                           {row.row, row.queryHead}, d, width);
      if (memory.hasDots())
        return storePairs(q, inMemory, d);
      q = convertLanes(frame, q, frame.builder.getF32Type());
      q = f.mul(q, f.splat(factor, width));
      field.pieces.store(field.pieces.divide(q), memory.queries, inMemory, d);
    };
    frame.loop(frame.index(0), frame.index(field.size), frame.index(width),
               storePiece);
  }
  const HeadPieces &pieces = memory.values.pieces;
  SmallVector<Value> zeros(pieces.countVectors(),
                           f.constant(f.vectorOf(pieces.getLanes()), 0));
  frame.loop(frame.index(0), frame.index(memory.values.size),
             frame.index(pieces.getWidth()),
             [&](Value d) { pieces.store(zeros, memory.acc, inMemory, d); });
  auto store = [&](float number, Value target) {
    memref::StoreOp::create(frame.builder, frame.loc, f.constant(number),
                            target, inMemory);
  };
  store(kLowest, memory.rowMax);
  store(0, memory.rowSum);
}

void RowsOfHeads::storePairs(Value elements, Value inMemory, Value d) const {
  auto words = VectorType::get(kLanes, frame.builder.getI32Type());
  Value pairs =
      vector::BitCastOp::create(frame.builder, frame.loc, words, elements);
  vector::StoreOp::create(frame.builder, frame.loc, pairs, memory.queries,
                          ValueRange{inMemory, frame.div(d, 2)});
}

void RowsOfHeads::end(const Row &row, Value head, Value inMemory) const {
  const DeviceMath &f = attention.f;
  const HeadPieces &pieces = memory.values.pieces;
  auto load = [&](Value source) -> Value {
    return memref::LoadOp::create(frame.builder, frame.loc, source, inMemory);
  };
  Value factor =
      attention.end(row, head, load(memory.rowMax), load(memory.rowSum));
  auto storePiece = [&](Value d) {
    Value values = pieces.join(pieces.load(memory.acc, inMemory, d));
    storeDense(frame, f.mul(values, f.splat(factor, pieces.getWidth())),
               attention.op.getOut(), {row.row, row.queryHead}, d);
  };
  frame.loop(frame.index(0), frame.index(memory.values.size),
             frame.index(pieces.getWidth()), storePiece);
}

void RowsOfHeads::addTile(Value token, Value lastToken) const {
  auto addIfGiven = [&](Value otherId, function_ref<void()> add) {
    runIfGiven(frame, otherId ? frame.less(frame.i32(-1), otherId) : Value(),
               add);
  };
  if (memory.ids && haveHeads(attention.op.getRows()))
    return forHeads([&](Value head, Value firstInMemory) {
      Value otherId = loadIds(head, token, lastToken);
      addIfGiven(otherId, [&] {
        addTileOfHead({head, token, lastToken, otherId}, firstInMemory);
      });
    });
  Value otherId;
  if (memory.ids)
    otherId = loadIds(firstHead, token, lastToken);
  addIfGiven(otherId, [&] {
    forHeads([&](Value head, Value firstInMemory) {
      addTileOfHead({head, token, lastToken, otherId}, firstInMemory);
    });
  });
}

void RowsOfHeads::addTileOfHead(const HeadTile &tile,
                                Value firstInMemory) const {
  loadScales(tile);
  int64_t size = getGroupSize(attention);
  frame.loop(frame.index(0), count, frame.index(size), [&](Value number) {
    RowGroup group{rows, frame.add(firstInMemory, number),
                   attention.getRow(rows, tile.head, number),
                   frame.equal(number, frame.index(0)), size};
    kvcache::addTile(attention, memory, group, tile);
  });
}

Value RowsOfHeads::loadIds(Value head, Value token, Value lastToken) const {
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, frame.index(0), frame.index(kTileTokens),
      frame.index(1), frame.i32(-1),
      [&](OpBuilder &, Location, Value j, ValueRange largest) {
        Value column = frame.min(frame.add(token, j), lastToken);
        Value id = frame.toI32(attention.loader.loadId(rows, head, column));
        memref::StoreOp::create(frame.builder, frame.loc, id, memory.ids, j);
        scf::YieldOp::create(frame.builder, frame.loc,
                             frame.max(largest.front(), id));
      });
  return loop.getResult(0);
}

void RowsOfHeads::loadScales(const HeadTile &tile) const {
  if (!memory.keyScales && !memory.valueScales)
    return;
  AttentionOp op = attention.op;
  frame.loop(
      frame.index(0), frame.index(kTileTokens), frame.index(1), [&](Value j) {
        Place place = getPlace(attention, memory, rows, tile, j);
        auto load = [&](Value cache, Value scales) {
          if (scales)
            memref::StoreOp::create(
                frame.builder, frame.loc,
                loadTokenScale(frame, cache, place, tile.head), scales, j);
        };
        load(op.getKeyCache(), memory.keyScales);
        if (op.getValueCache())
          load(op.getValueCache(), memory.valueScales);
      });
}

void FewRows::compute(const QueryRows &rows, Value firstHead,
                      Value count) const {
  RowsOfHeads(attention, memory, rows, firstHead, count).compute();
}
