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
    Value size = frame.index(kTileTokens);
    Value first = frame.mul(frame.div(seen.from, size), size);
    frame.runIf(frame.less(seen.from, seen.to), [&] {
      frame.loop(first, seen.to, size, [&](Value token) {
        addTile({/*head=*/Value(), token, seen.from, lastToken,
                 /*otherId=*/Value()});
      });
    });
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
  /// Adds a tile for all heads.
  void addTile(HeadTile tile) const;
  void addTileOfHead(const HeadTile &tile, Value firstInMemory) const;
  /// Loads the slots of a tile's columns for its head, and returns the
  /// largest.
  Value loadIds(const HeadTile &tile) const;
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

void RowsOfHeads::addTile(HeadTile tile) const {
  auto addIfGiven = [&](function_ref<void()> add) {
    runIfGiven(frame,
               tile.otherId ? frame.less(frame.i32(-1), tile.otherId) : Value(),
               add);
  };
  if (memory.ids && haveHeads(attention.op.getRows()))
    return forHeads([&](Value head, Value firstInMemory) {
      tile.head = head;
      tile.otherId = loadIds(tile);
      addIfGiven([&] { addTileOfHead(tile, firstInMemory); });
    });
  tile.head = firstHead;
  if (memory.ids)
    tile.otherId = loadIds(tile);
  addIfGiven([&] {
    forHeads([&](Value head, Value firstInMemory) {
      tile.head = head;
      addTileOfHead(tile, firstInMemory);
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

Value RowsOfHeads::loadIds(const HeadTile &tile) const {
  auto loop = scf::ForOp::create(
      frame.builder, frame.loc, frame.index(0), frame.index(kTileTokens),
      frame.index(1), frame.i32(-1),
      [&](OpBuilder &, Location, Value j, ValueRange largest) {
        Value column = getNearest(frame, tile, frame.add(tile.first, j));
        Value id =
            frame.toI32(attention.loader.loadId(rows, tile.head, column));
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
